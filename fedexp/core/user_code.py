"""Runs user code: its exceptions become one-line errors, and changes to the process are refused."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from traceback import extract_tb
from typing import IO, Any

from fedexp.core.errors import ConfigError, first_line
from fedexp.core.signals import TerminationSignal, count_interrupts


@contextmanager
def refuse_errors(
    message: str,
    *,
    allowed: tuple[type[BaseException], ...] = (),
    unless: Callable[[BaseException], bool] = lambda _: False,
    with_line: bool = False,
    cure: str = "",
) -> Iterator[None]:
    """Turns whatever is raised inside into a ConfigError that begins with `message`.

    What is raised `allowed`, or where `unless` holds, goes on as it is, and so does a signal to the process.
    `with_line` adds the file and the line of the code that raised it, `cure` what to do.
    """
    with count_interrupts() as interrupts:
        try:
            yield
        except (ConfigError, TerminationSignal, *allowed):
            raise
        except BaseException as error:
            if interrupts or unless(error):
                raise
            last = extract_tb(error.__traceback__)[-1]
            line = f" ({Path(last.filename).name}, line {last.lineno})" if with_line else ""
            details = ": ".join(filter(None, (type(error).__name__, first_line(error))))
            raise ConfigError(f"{message} {details}{line}{cure and f'; {cure}'}") from error


@contextmanager
def refuse_changed_settings(subject: str) -> Iterator[None]:
    """Restores the settings of the process that are changed inside.

    Raises:
        ConfigError: `subject` changed one, or closed a stream that this process writes to.
    """
    settings = _settings()
    before = {name: read() for name, (read, _) in settings.items()}
    streams = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    changed: list[str] = []
    try:
        yield
    finally:
        for name, (read, write) in settings.items():
            if read() != before[name]:
                changed.append(f"calls {name}")
                write(before[name])
        changed += [f"closes sys.{name}" for name, stream in streams.items() if _reopen_if_closed(name, stream)]
    if changed:
        raise ConfigError(f"{subject} must leave the process as it is, but {changed[0]}; take that out")


def _settings() -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """The process-wide settings that user code must not change: how each is read and restored, by function name."""
    import torch  # whoever needs no network must not wait for it

    def set_default_device(device: torch.device) -> None:
        torch.set_default_device(None if device.type == "cpu" else device)

    def set_deterministic(mode: tuple[bool, bool]) -> None:
        torch.use_deterministic_algorithms(mode[0], warn_only=mode[1])

    return {
        "sys.setrecursionlimit": (sys.getrecursionlimit, sys.setrecursionlimit),  # first: the others call functions
        "torch.set_grad_enabled": (torch.is_grad_enabled, torch.set_grad_enabled),
        "torch.set_default_dtype": (torch.get_default_dtype, torch.set_default_dtype),
        "torch.set_default_device": (torch.get_default_device, set_default_device),
        "torch.set_num_threads": (torch.get_num_threads, torch.set_num_threads),
        "torch.set_float32_matmul_precision": (
            torch.get_float32_matmul_precision,
            torch.set_float32_matmul_precision,
        ),
        "torch.use_deterministic_algorithms": (
            lambda: (
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
            ),
            set_deterministic,
        ),
        "torch.autocast": (lambda: torch.is_autocast_enabled("cpu"), lambda on: torch.set_autocast_enabled("cpu", on)),
        **_process_settings(),
    }


def _process_settings() -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Those of Python and the system. A module may add to `sys.path`, but others need what is there."""
    path = list(sys.path)

    def set_path(_: bool) -> None:
        sys.path[:] = path

    settings: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
        "os.chdir": (_working_folder, _enter_folder),
        "sys.path.remove": (lambda: set(path) <= set(sys.path), set_path),
    }
    with suppress(ImportError):  # Windows has no such limits
        import resource

        settings["resource.setrlimit"] = (lambda: resource.getrlimit(resource.RLIMIT_NOFILE), _set_open_files)
    return settings


def _working_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError:  # it was removed
        return ""


def _enter_folder(folder: str) -> None:
    with suppress(OSError):  # it was removed
        os.chdir(folder)


def _set_open_files(limit: tuple[int, int]) -> None:
    import resource

    with suppress(ValueError):  # only root may raise the second number again
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)


def _reopen_if_closed(name: str, before: IO[str] | None) -> bool:
    """Whether a standard stream was closed or taken away; it is open again then: Python leaves its descriptor open."""
    taken_away = getattr(sys, name) is None and before is not None
    if taken_away:
        setattr(sys, name, before)
    stream = getattr(sys, name)
    if stream is None or not stream.closed:
        return taken_away
    setattr(sys, name, open(("stdout", "stderr").index(name) + 1, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    return True
