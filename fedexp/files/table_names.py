"""Names that stand in tables of a run, as names of columns or in cells: readers must get back what was written."""

import re
from collections import Counter
from collections.abc import Sequence

_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # control characters, and what else ends a line


def name_with_control(names: Sequence[str]) -> str | None:
    """The first name that has a line break or another control character; None if none has."""
    return next((name for name in names if _BREAKS.search(name)), None)


def fault_in_column_names(names: Sequence[str], reserved: Sequence[str]) -> str | None:
    """Why a table cannot have columns of these names beside those that it has, in words; None if it can.

    Example:
        >>> fault_in_column_names(["cat", "client"], ["client", "examples"])
        "must not be 'client', which is another column of the run's tables"
        >>> fault_in_column_names(["cat", "cat "], [])
        "must differ from each other, apart from blanks around them, got 'cat' twice"
    """
    if (name := name_with_control(names)) is not None:
        return f"must have no line breaks or other control characters, got {name[:40]!r}"
    counts = Counter(name.strip() for name in names)
    if shared := next((name for name in counts if name in reserved), None):
        return f"must not be {shared!r}, which is another column of the run's tables"
    if twice := next((name for name, count in counts.items() if count > 1), None):
        return f"must differ from each other, apart from blanks around them, got {twice[:40]!r} twice"
    return None
