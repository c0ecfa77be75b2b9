"""Who is named where an error arose: a user's method, else a function in a user's file, else nobody."""

from collections.abc import Callable
from types import FunctionType

import own_networks
import pytest
import torch
from torch import nn

from fedexp.core.nested import walk
from fedexp.process import user_code_errors


def caught(act: Callable[[], object]) -> Exception:
    """What it raises, as if `fedexp` had called it."""
    ours = FunctionType(called.__code__, {"__name__": "fedexp.core.called"})
    try:
        ours(act)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def called(act: Callable[[], object]) -> object:
    return act()


def test_a_function_that_pytorch_calls_is_named_with_its_line():
    network = own_networks.Hooked((4,), 3)
    told = user_code_errors.find_user_code(caught(network(torch.zeros(5, 4)).sum().backward))
    assert told == f"own_networks.torn (own_networks.py, line {own_networks.torn.__code__.co_firstlineno + 4})"


def test_a_function_that_we_call_ourselves_may_be_a_defect_of_ours():
    assert user_code_errors.find_user_code(caught(lambda: own_networks.failing(3))) is None


def test_a_method_comes_before_the_functions_that_it_calls():
    class Failing(nn.Module):
        def forward(self, classes: int) -> None:
            own_networks.failing(classes)

    told = user_code_errors.find_user_code(caught(lambda: Failing()(3)))
    assert told is not None
    assert ".Failing.forward (test_user_code_errors.py, line " in told


def test_code_that_only_calls_us_is_not_to_blame():
    with pytest.raises(AttributeError) as told:
        list(walk(3))  # pyright: ignore[reportArgumentType] - the defect
    assert user_code_errors.find_user_code(told.value) is None


def test_code_of_no_file_and_of_python_itself_is_not_to_blame():
    for text in ("lambda: 1 / 0", "lambda: __import__('textwrap').indent(3, '')"):
        act = eval(compile(text, "<text>", "eval"), {"__name__": "text"})
        assert user_code_errors.find_user_code(caught(act)) is None


def test_what_goes_through_us_again_is_ours():
    def act() -> None:
        list(walk(3))  # pyright: ignore[reportArgumentType] - the defect

    assert user_code_errors.find_user_code(caught(act)) is None


def test_what_memory_was_lacking_is_said_in_plain_words():
    text = (
        "[enforce fail at alloc_cpu.cpp:127] . can't allocate memory: you tried to allocate 256000000000 bytes. Error"
    )
    told = user_code_errors.explain_in_one_line(RuntimeError(text))
    assert told == "not enough memory: 256,000,000,000 bytes were needed in one piece; make the run smaller"
    told = user_code_errors.explain_in_one_line(MemoryError("Unable to allocate 8. GiB for an array"))
    assert told == "not enough memory: Unable to allocate 8. GiB for an array; make the run smaller"
