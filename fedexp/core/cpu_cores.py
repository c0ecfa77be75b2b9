"""How many cores a process may keep busy."""

import os

SHARE = "FEDEXP_CORES"  # set for a process that shares the machine with its like


def usable_cores() -> int:
    """What this process was given, else the cores that it may run on."""
    if SHARE in os.environ:
        return max(1, int(os.environ[SHARE]))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
