"""What code of the user's own raises becomes one line, and the process stays as it was."""

import io
import os
import resource
import signal
import sys
from collections.abc import Callable

import pytest
import torch

from fedexp.core.errors import ConfigError, first_line
from fedexp.core.signals import TerminationSignal
from fedexp.core.user_code import refuse_changed_settings, refuse_errors


class Wordless(BaseException):
    """Cannot say what went wrong."""

    def __str__(self) -> str:
        raise SystemExit(0)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SystemExit(3), "it raised SystemExit: 3"),
        (KeyboardInterrupt(), "it raised KeyboardInterrupt"),
        (GeneratorExit(), "it raised GeneratorExit"),
        (Wordless(), "it raised Wordless: (its __str__ raised SystemExit)"),
        (ValueError("one\ntwo"), "it raised ValueError: one"),
        (ConfigError("as it is"), "as it is"),
    ],
)
def test_whatever_is_raised_becomes_one_line(error: BaseException, said: str):
    with pytest.raises(ConfigError) as refused, refuse_errors("it raised"):
        raise error
    assert str(refused.value) == said


def test_ctrl_c_is_no_error_of_the_code():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may ignore it
    with pytest.raises(KeyboardInterrupt), refuse_errors("it raised"):
        signal.raise_signal(signal.SIGINT)  # to this thread: another might take it a moment later
    with pytest.raises(TerminationSignal), refuse_errors("it raised"):
        raise TerminationSignal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_very_long_words_are_cut():
    assert first_line(ValueError("x" * 5000)) == "x" * 400 + "... (5,000 characters)"


CHANGES: dict[str, Callable[[], object]] = {
    "calls torch.set_grad_enabled": lambda: torch.set_grad_enabled(False),
    "calls torch.set_default_dtype": lambda: torch.set_default_dtype(torch.float64),
    "calls torch.set_default_device": lambda: torch.set_default_device("meta"),
    "calls torch.set_num_threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "calls torch.set_float32_matmul_precision": lambda: torch.set_float32_matmul_precision("medium"),
    "calls torch.use_deterministic_algorithms": lambda: torch.use_deterministic_algorithms(True),
    "calls torch.autocast": lambda: torch.autocast("cpu").__enter__(),
    "calls os.chdir": lambda: os.chdir("/"),
    "calls sys.setrecursionlimit": lambda: sys.setrecursionlimit(sys.getrecursionlimit() + 1),
    "calls sys.path.remove": lambda: sys.path.clear(),
    "calls resource.setrlimit": lambda: resource.setrlimit(
        resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    ),
}


def settings() -> tuple[object, ...]:
    return (
        *(torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_default_device(), torch.get_num_threads()),
        *(torch.get_float32_matmul_precision(), torch.are_deterministic_algorithms_enabled(), os.getcwd()),  # noqa: PTH109
        *(torch.is_autocast_enabled("cpu"), sys.getrecursionlimit(), tuple(sys.path)),
        resource.getrlimit(resource.RLIMIT_NOFILE),
    )


@pytest.mark.parametrize("told", CHANGES)
def test_a_setting_that_is_changed_is_restored_and_refused(told: str):
    before = settings()
    with (
        pytest.raises(ConfigError, match=f"^net must leave the process as it is, but {told}; "),
        refuse_changed_settings("net"),
    ):
        CHANGES[told]()
    assert settings() == before


def test_what_is_changed_before_an_error_is_restored_too():
    def failing() -> None:
        torch.set_grad_enabled(False)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), refuse_changed_settings("net"):
        failing()
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_stream_that_is_closed_is_open_again(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, name, io.StringIO())
    with pytest.raises(ConfigError, match=rf"but closes sys\.{name}; "), refuse_changed_settings("net"):
        getattr(sys, name).close()
    assert not getattr(sys, name).closed


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_stream_that_is_taken_away_is_there_again(name: str, monkeypatch: pytest.MonkeyPatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, name, stream)
    with pytest.raises(ConfigError, match=rf"but closes sys\.{name}; "), refuse_changed_settings("net"):
        setattr(sys, name, None)
    assert getattr(sys, name) is stream


def test_a_module_may_add_to_the_path(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    with refuse_changed_settings("net"):
        sys.path.insert(0, "/mine")
    assert sys.path[0] == "/mine"


def test_errors_may_be_left_as_they_are():
    with (
        pytest.raises(KeyError),
        refuse_errors("it raised", unless=lambda error: isinstance(error, KeyError)),
    ):
        raise KeyError
