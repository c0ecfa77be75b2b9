"""Asked to end, a process raises where it stands, once; what was ignored stays so."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from fedexp import cli
from fedexp.core import signals
from fedexp.core.errors import ConfigError
from fedexp.core.signals import (
    TerminationSignal,
    delay_interrupts,
    exit_code,
    find_interrupt,
    raise_on_termination,
)
from fedexp.core.user_code import refuse_errors

ENDS = [(signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in signals.END_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_control_c_is_130():
    assert exit_code(KeyboardInterrupt()) == 130


@pytest.mark.parametrize(("number", "code"), ENDS)
def test_it_is_raised_and_the_handlers_are_put_back(number: int, code: int):
    signal.signal(number, signal.SIG_DFL)
    with pytest.raises(KeyboardInterrupt) as raised, raise_on_termination():
        os.kill(os.getpid(), number)
    assert exit_code(raised.value) == code
    assert signal.getsignal(number) is signal.SIG_DFL


@pytest.mark.parametrize("second", [number for number, _ in ENDS])
def test_a_second_one_does_not_disturb_the_end(second: int):
    for number, _ in ENDS:
        signal.signal(number, signal.SIG_DFL)
    saved = []
    with raise_on_termination(), suppress(TerminationSignal):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), second)
            saved.append(True)
    assert saved


def test_under_nohup_a_closed_terminal_is_nothing():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with raise_on_termination():
        os.kill(os.getpid(), signal.SIGHUP)


def test_another_thread_hears_nothing_and_says_nothing():
    failed = []

    def inside() -> None:
        try:
            with raise_on_termination():
                pass
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert not failed


def interrupted(times: int) -> list[str]:
    """What is done in a block with so many interrupts, of which the last one is not caught."""
    done = []

    def work() -> None:
        with delay_interrupts():
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
            done.append("whole")

    with pytest.raises(KeyboardInterrupt):
        work()
    return done


def test_an_interrupt_waits_for_the_end_of_a_block_and_a_second_one_does_not():
    assert interrupted(1) == ["whole"]
    assert interrupted(2) == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_outside_of_the_main_thread_nothing_is_changed():
    handlers = []

    def look() -> None:
        with delay_interrupts():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]


def test_a_second_end_signal_within_a_block_leaves_later_ones_ignored():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def work() -> None:
        with raise_on_termination():
            try:
                with delay_interrupts():
                    for _ in range(2):
                        signal.raise_signal(signal.SIGTERM)
            finally:
                signal.raise_signal(signal.SIGTERM)  # while the state is saved

    with pytest.raises(TerminationSignal):
        work()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def replaced(error: type[Exception], cause: bool = False) -> Exception:
    """An error that a library raises in place of a Ctrl-C."""
    try:
        try:
            raise TerminationSignal(15)
        except KeyboardInterrupt as interrupt:
            try:
                raise AttributeError("'NoneType' object has no attribute 'flags'")
            except AttributeError as inner:
                raise error("defaults: 'NoneType' object has no attribute 'flags'") from (interrupt if cause else inner)
    except error as raised:
        return raised


@pytest.mark.parametrize("cause", [True, False])
def test_an_interrupt_behind_an_error_is_found(cause: bool):
    behind = find_interrupt(replaced(ConfigError, cause))
    assert behind is not None
    assert exit_code(behind) == 143


def test_an_error_alone_has_none_behind():
    assert find_interrupt(ConfigError("no")) is None
    error = ValueError("its own cause")
    error.__cause__ = error
    assert find_interrupt(error) is None


def test_a_keyboard_interrupt_of_the_users_own_code_is_no_interrupt():
    def refused() -> None:
        with refuse_errors("model.factory=mine:make"):
            raise KeyboardInterrupt("mine")

    with pytest.raises(ConfigError, match="make KeyboardInterrupt: mine") as raised:
        refused()
    assert find_interrupt(raised.value) is None


def test_the_command_says_interrupted_whatever_a_library_makes_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fail(_: list[str]) -> int:
        raise replaced(ConfigError)

    monkeypatch.setattr(cli, "_dispatch", fail)
    assert cli.main(["run"]) == 143
    assert capsys.readouterr().err == "fedexp: interrupted\n"
