"""Parts of users that answer anything: every place of every method's answer, and whatever can be raised."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import torch

from scripts.fuzz.judged import Input, as_command, begun
from tests import composing
from tests.simulation.checks.test_contract_checks import MISTAKES, PARTS, config_of, own_parts

NAN = float("nan")
ODD: dict[str, Any] = {
    "None": None,
    "True": True,
    "-1": -1,
    "3": 3,
    "2**70": 2**70,
    "0.5": 0.5,
    "NaN": NAN,
    "'x'": "x",
    "b'x'": b"x",
    "[]": [],
    "[[]]": [[]],
    "{}": {},
    "{1: 2}": {1: 2},
    "()": (),
    "(1, 2)": (1, 2),
    "{3}": {3},
    "object": object(),
    "a type": int,
    "a function": len,
    "a generator": (each for each in ()),
    "np.float64": np.float64(3),
    "np.zeros(3)": np.zeros(3),
    "np.zeros(0)": np.zeros(0),
    "np objects": np.array([None, "x", 3], dtype=object),
    "np.arange(3)": np.arange(3),
    "np.full -5": np.full(3, -5),
    "np 0-d": np.array(3),
    "np texts": np.array(["x"]),
    "torch.zeros(0)": torch.zeros(0),
    "torch 0-d": torch.tensor(1.0),
    "torch ints": torch.zeros(3, dtype=torch.int64),
    "torch NaN": torch.full((3, 90), NAN),
    "torch sparse": torch.zeros(3, 90).to_sparse(),
    "torch meta": torch.zeros(90, device="meta"),
    "torch complex": torch.zeros(90, dtype=torch.complex64),
    "torch bool": torch.zeros(90, dtype=torch.bool),
    "torch huge": torch.zeros(1).expand(3, 10**12),
}
RAISED = (
    *(ZeroDivisionError, KeyError, IndexError, ValueError, TypeError, RuntimeError, AttributeError, AssertionError),
    *(MemoryError, OSError, FileNotFoundError, BrokenPipeError, StopIteration, RecursionError, NotImplementedError),
    *(ImportError, UnicodeError, EOFError, TimeoutError, ArithmeticError, LookupError, BufferError),
)
DEEPEST = 12  # places that are tried of an answer; where it has fewer they come again
ENGINES = ("loop", "stacked")


def answers() -> Iterator[Input]:
    """Every method's answer with something odd in each of its places."""
    for method in PARTS:
        for number, odd in enumerate(ODD):
            for place in range(DEEPEST):
                change = _placing(place, ODD[odd])
                yield _part(method, f"place {place} of its answer = {odd}", change, ENGINES[(number + place) % 2])


def mistakes() -> Iterator[Input]:
    """The mistakes whose words are known, and everything that can be raised."""
    for engine in ENGINES:
        for number, (method, change, _) in enumerate(MISTAKES):
            yield _part(method, f"mistake {number} of tests/simulation/checks/test_contract_checks.py", change, engine)
        for method in PARTS:
            for error in RAISED:
                yield _part(method, f"{error.__name__} raised", _raising(error), engine)


def _part(method: str, what: str, change: Any, engine: str) -> Input:
    def act() -> int:
        own_parts.MISTAKE[method] = change
        return begun(config_of(lambda *words: composing.tiny(f"engine={engine}", *words), method))

    return Input(f"own_parts.{PARTS[method][1]}.{method} with engine={engine}: {what}", lambda: as_command(act))


def _raising(error: type[BaseException]) -> Any:
    def fail(*_: Any) -> None:
        raise error("first line\nsecond line")

    return fail


def _placing(place: int, odd: Any) -> Any:
    """Puts something odd in that place of an answer: the whole, one of its values, or a field of one of them."""

    def change(answer: Any, *_: Any) -> Any:
        makers = [lambda: odd, *_deeper(answer, odd)]
        return makers[place % len(makers)]()

    return change


def _deeper(answer: Any, odd: Any) -> Iterator[Any]:
    if isinstance(answer, tuple) and type(answer) is tuple:
        for number, value in enumerate(answer):
            yield lambda number=number: (*answer[:number], odd, *answer[number + 1 :])
            for inner in _deeper(value, odd):
                yield lambda number=number, inner=inner: (*answer[:number], inner(), *answer[number + 1 :])
    elif is_dataclass(answer) and not isinstance(answer, type):
        for field in fields(answer):
            if field.init:
                yield lambda name=field.name: replace(answer, **{name: odd})
    elif isinstance(answer, dict):
        yield lambda: {**answer, "odd": odd}
