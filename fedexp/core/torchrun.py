"""Whether torchrun started this process, and as which of how many."""

import os


def rank() -> int:
    """This process's number under torchrun; 0 owns the run folder."""
    return int(os.environ.get("RANK", "0")) if processes() > 1 else 0


def processes() -> int:
    """How many processes torchrun started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1
