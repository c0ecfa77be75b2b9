"""Whether torchrun started this process, and as which of how many."""

import os


def processes() -> int:
    """How many processes torchrun started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1


def under_torchrun() -> bool:
    """Whether this process is one of several."""
    return processes() > 1


def rank() -> int:
    """This process's number under torchrun; 0 owns the run folder."""
    return int(os.environ.get("RANK", "0")) if under_torchrun() else 0
