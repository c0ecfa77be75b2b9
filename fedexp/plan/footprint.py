"""Peak memory of this process and its workers, in megabytes."""

import sys
from contextlib import suppress
from pathlib import Path

import torch

PROC = Path("/proc")


def peak_mb() -> float:
    """The most that this process has held so far; 0 where the system does not tell."""
    with suppress(ImportError):  # on Windows
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / 1e6 if sys.platform == "darwin" else most * 1024 / 1e6
    return 0.0


def workers_mb(parent: int) -> float:
    """The most that the children of a process use alone; what they share with it is not counted.

    0 if the system does not say.
    """
    children = PROC / str(parent) / "task" / str(parent) / "children"
    try:
        return sum(_private_mb(int(child)) for child in children.read_text().split())
    except OSError:
        return 0.0


def gpu_mb(device: torch.device) -> float | None:
    """The most that tensors have used on a GPU; None on a CPU."""
    return torch.cuda.max_memory_allocated(device) / 1e6 if device.type == "cuda" else None


def _private_mb(process: int) -> float:
    """The private pages of a process, and what it has freed since its peak."""
    try:
        parts = _kilobytes(PROC / str(process) / "smaps_rollup")
        status = _kilobytes(PROC / str(process) / "status")
    except OSError:  # it has ended, or belongs to another user
        return 0.0
    private = parts.get("Private_Clean", 0) + parts.get("Private_Dirty", 0)
    return (private + status.get("VmHWM", 0) - status.get("VmRSS", 0)) * 1024 / 1e6


def _kilobytes(path: Path) -> dict[str, int]:
    words = (line.split() for line in path.read_text().splitlines())
    return {word[0].rstrip(":"): int(word[1]) for word in words if len(word) == 3 and word[2] == "kB"}
