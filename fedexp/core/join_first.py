"""Lists in sentences, of which only the first entries are named."""

from collections.abc import Sequence


def join_first(texts: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first `most` of the texts, and how many more there are.

    Example:
        >>> join_first(["a", "b", "c"], 2)
        'a, b and 1 more'
        >>> join_first(["a 1", "b 2", "c 3"], 2, "; ")
        'a 1; b 2; and 1 more'
    """
    names, unnamed = separator.join(texts[:most]), len(texts) - most
    return f"{names}{separator.strip(' ,')} and {unnamed:,} more" if unnamed > 0 else names
