"""How many cores a process may keep busy."""

import os

SHARE = "FEDEXP_CORES"  # set for a process that shares the machine with other runs of a sweep or search


def usable_cores() -> int:
    """The number of cores that this process was given, else of those that it may run on."""
    if SHARE in os.environ:
        return max(1, int(os.environ[SHARE]))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
