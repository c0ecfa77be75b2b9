from caches import _cache, real, shared_cache
from run_folders import make_run, method

__all__ = ["_cache", "make_run", "method", "real", "shared_cache"]
