from groups import live

__all__ = ["live"]
