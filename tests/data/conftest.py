from caches import _cache, own_cache, shared_cache

__all__ = ["_cache", "own_cache", "shared_cache"]
