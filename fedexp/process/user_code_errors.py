"""Names the user's own part, network or function in which an error arose, with its line."""

import re
import sys
import sysconfig
from itertools import takewhile
from pathlib import Path
from traceback import walk_tb
from types import FrameType

from fedexp.core.errors import ConfigError, RunError, first_line
from fedexp.core.part import Part

OWN_PACKAGES = ("fedexp", "torch")
INSTALL_FOLDERS = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def explain_in_one_line(error: BaseException) -> str | None:
    """One line about an error with a known cause; None for a defect of fedexp itself."""
    if isinstance(error, ConfigError | RunError):
        return str(error)
    error = unwrap_stop_iteration(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in first_line(error):
        piece = re.search(r"allocate (\d+) bytes", first_line(error))  # as PyTorch says it, in the middle of more
        reason = f"{int(piece[1]):,} bytes were needed in one piece" if piece else first_line(error)
        return f"not enough memory: {reason}; make the run smaller"
    if type(error).__name__ == "OutOfMemoryError":  # PyTorch's, which is not imported for its name
        return (
            f"the GPU's memory is too small: {first_line(error)}; end what else uses it and continue with fedexp "
            "resume, or begin a run with a lower engine.memory_mb, engine.evaluation_chunk or local.batch_size"
        )
    where = find_user_code(error)
    if where is None:
        return None
    return f"{where} raised {type(error).__name__}: {first_line(error)}; FEDEXP_DEBUG=1 shows the traceback"


def unwrap_stop_iteration(error: BaseException) -> BaseException:
    """The error as it was raised: Python turns a StopIteration that leaves a generator into a RuntimeError."""
    inner = error.__cause__
    return inner if isinstance(error, RuntimeError) and isinstance(inner, StopIteration | StopAsyncIteration) else error


def find_user_code(error: BaseException) -> str | None:
    """The first method of a user's own class that an error passed through; else their function that PyTorch had called.

    None if it passed through neither. Such functions are hooks and backward passes.
    """
    frame, line = find_user_frame(error)
    if frame is not None:
        kind = type(frame.f_locals["self"])
        return _location(f"{kind.__module__}.{kind.__qualname__}.{frame.f_code.co_name}", frame, line)
    frames = [*walk_tb(error.__traceback__)]
    user_frames = [
        (frame, line) for frame, line in frames if _package(frame) not in OWN_PACKAGES and not _is_installed(frame)
    ]
    frames_after_fedexp = [*takewhile(lambda entry: _package(entry[0]) != "fedexp", reversed(frames))]
    if (
        not user_frames
        or user_frames[-1] not in frames_after_fedexp
        or all(_package(frame) != "torch" for frame, _ in frames_after_fedexp)
    ):
        return None
    frame, line = user_frames[-1]
    return _location(f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}", frame, line)


def find_user_frame(error: BaseException) -> tuple[FrameType | None, int]:
    """The first frame of a user's part or network that an error passed through, and the line there."""
    for frame, line in walk_tb(error.__traceback__):
        holder = frame.f_locals.get("self")
        if is_user_code(frame) and (isinstance(holder, Part) or is_network(holder)):
            return frame, line
    return None, 0


def arose_in_part(error: BaseException) -> bool:
    """Whether the first code of a user's that an error passed through is a method of a part, not of a network."""
    frame, _ = find_user_frame(error)
    return frame is not None and isinstance(frame.f_locals["self"], Part)


def _location(name: str, frame: FrameType, line: int) -> str:
    return f"{name} ({Path(frame.f_code.co_filename).name}, line {line})"


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def _is_installed(frame: FrameType) -> bool:
    """Whether code belongs to Python or to a package that was installed, or to no file at all."""
    file = frame.f_code.co_filename
    return file.startswith("<") or file.startswith(INSTALL_FOLDERS)


def is_user_code(frame: FrameType) -> bool:
    """Whether the code of a frame is neither ours nor PyTorch's."""
    return _package(frame) not in OWN_PACKAGES


def is_network(holder: object) -> bool:
    """Whether an object is a PyTorch module; does not import PyTorch, as without it there are no modules."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(holder, torch.nn.Module)
