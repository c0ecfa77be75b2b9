"""Names the user's own part or network in which an error arose, with its method and line."""

import sys
from pathlib import Path
from traceback import walk_tb
from types import FrameType

from fedexp.core.errors import ConfigError, RunError, first_line
from fedexp.core.part import Part


def one_line(error: BaseException) -> str | None:
    """One line about an error with a known cause; None for a defect of fedexp itself."""
    if isinstance(error, ConfigError | RunError):
        return str(error)
    error = raised(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return f"not enough memory: {first_line(error)}; make the run smaller"
    where = culprit(error)
    if where is None:
        return None
    return f"{where} raised {type(error).__name__}: {first_line(error)}; FEDEXP_DEBUG=1 shows the traceback"


def raised(error: BaseException) -> BaseException:
    """The error as it was raised: Python turns a StopIteration that leaves a generator into a RuntimeError."""
    inner = error.__cause__
    return inner if isinstance(error, RuntimeError) and isinstance(inner, StopIteration | StopAsyncIteration) else error


def culprit(error: BaseException) -> str | None:
    """The first method of a user's own class that an error passed through; None if it passed through none."""
    for frame, line in walk_tb(error.__traceback__):
        holder = frame.f_locals.get("self")
        if is_own(frame) and (isinstance(holder, Part) or is_network(holder)):
            kind, code = type(holder), frame.f_code
            return f"{kind.__module__}.{kind.__qualname__}.{code.co_name} ({Path(code.co_filename).name}, line {line})"
    return None


def is_own(frame: FrameType) -> bool:
    """Whether the code of a frame is neither ours nor PyTorch's."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] not in ("fedexp", "torch")


def is_network(holder: object) -> bool:
    """Whether an object is a PyTorch module; does not import PyTorch, as without it there are no modules."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(holder, torch.nn.Module)
