"""Networks of users by `model=torch`: odd layers, states, answers, errors, settings, methods, and two of them at once.

The pieces are in `networks.yaml`. What runs gives the same models on one worker and on two, and the same losses however
its test examples are cut.
"""

import csv
from collections.abc import Iterator
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path
from textwrap import indent

import numpy as np
import yaml

from fedexp.files.run_tables import has_rounds
from scripts.forked import outcome
from scripts.fuzz.judged import LIMIT_S, Input, apart, run_of
from scripts.fuzz.users_files import beside_modules, unless_given, whole_or_nothing, written

Piece = dict[str, str]
WORDS = (
    *("dataset=synthetic", "dataset.shape=[4]", "dataset.classes=3", "dataset.train_size=36", "dataset.test_size=12"),
    *("scenario.clients=4", "scenario.participants=3", "local.batch_size=4", "rounds=2", "pictures=false"),
)
ENGINES = ("loop", "stacked")
PRIVATE = ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=0.5", "privacy.delta=1e-3")
MORE = (  # of each piece, one of these by turns
    *((), PRIVATE, ("local=adam",), ("local.batch_size=full",), ("model.buffers=local",), ("scenario.clients=3",)),
    *(("federation=quantity", "federation.beta=0.1", "scenario.clients=12"), (*PRIVATE, "local.batch_size=full")),
    *(("local=prox", "aggregator=fednova"), ("evaluation.validation=true",), ("clustering=ifca",), ("codec=float16",)),
)
NAMED = (
    *("net", "net:", ":make", "net.make", "net.py:make", "net:missing", "net:Net.make", "nowhere:make", "net:np.zeros"),
    *(
        "/tmp/net.py:make",
        "./net:make",
        "net:make()",
        "net:make:make",
        "é:make",
        "net:__doc__",
        "net:torch",
        "''",
        "null",
    ),
    *(
        "torch.nn:Linear",
        "torch.nn:Module",
        "os:system",
        "builtins:print",
        "net:x" * 500,
        "[net:make]",
        "3",
        "net :make",
    ),
)
ARGUMENTS = (
    *(
        "{}",
        "{width: 3}",
        "{shape: [9]}",
        "{classes: 2}",
        "{classes: x}",
        "{facts: 3}",
        "{self: 3}",
        "{3: 4}",
        "[3]",
        "x",
    ),
    *("{'': 1}", "{net: {_target_: os.system}}", "{classes: 3.0}", "{classes: 1e20}", "{classes: 0}", "{shape: null}"),
)
PAIRS = 420
TEXT = """\
import os
import sys
import warnings

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class Bad(Exception):
    def __str__(self):
        raise ValueError("no text")

    __repr__ = __str__


class Bad2(Exception):
    def __repr__(self):
        raise ValueError("no text")


{top}


class Net(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.last = nn.Linear(6, classes)
{init}

{method}

    def forward(self, x):
{begin}
        h = self.first(x).tanh()
{forward}
        out = self.last(h)
{answer}
        return out


def make(shape, classes):
{start}
    net = Net(shape, classes)
{change}
    return net


{factory}
"""
DEPTHS = {
    "top": 0,
    "factory": 0,
    "method": 1,
    "start": 1,
    "change": 1,
    "init": 2,
    "begin": 2,
    "forward": 2,
    "answer": 2,
}
MOMENTS = {  # when what is raised or set happens
    "when imported": lambda lines: {"top": lines},
    "when called": lambda lines: {"start": lines},
    "when made": lambda lines: {"init": lines},
    "in forward": lambda lines: {"begin": lines},
    "in evaluation": lambda lines: {"begin": f"if not self.training:\n{indent(lines, '    ')}"},
    "in the fifth step": lambda lines: {
        "top": "STEPS = []",
        "begin": f"STEPS.append(1)\nif len(STEPS) > 5:\n{indent(lines, '    ')}",
    },
    "backwards": lambda lines: {
        "top": f"def hook(g, self=None, x=None):\n{indent(lines, '    ')}",
        "forward": "if h.requires_grad:\n    h.register_hook(hook)",
    },
}
HUGE = 1e36  # from here on the sum of a few losses is infinite in float32, and so it depends on their number
LATE = ("in the fifth step", "backwards")  # when a run has begun, which may have no round yet
UNREPEATABLE = ("the clock", "by the process")  # two runs in one way differ as well, and nobody can see why


@cache
def pieces() -> dict[str, Piece]:
    """All pieces by what they are."""
    held = yaml.safe_load((Path(__file__).parent / "networks.yaml").read_text(encoding="utf-8"))
    found = {
        f"layer {layer}": {"init": f"self.layer = {layer}", "forward": "h = self.layer(h)"} for layer in held["layers"]
    }
    found |= held["pieces"]
    found |= {f"answers: {what}": {"answer": lines} for what, lines in held["answers"].items()}
    for kind in ("raised", "settings"):
        for when, placed in MOMENTS.items():
            found |= {f"{what} {kind} {when}": placed(lines) for what, lines in held[kind].items()}
    found |= {f"a method: {what}": {"method": lines} for what, lines in held["methods"].items()}
    found |= {f"the network {what}": {"change": lines} for what, lines in held["changes"].items()}
    return found | {f"a factory: {what}": {"factory": lines} for what, lines in held["factories"].items()}


def modules() -> Iterator[Input]:
    """Every piece alone in both engines, pieces in twos, and odd names and arguments of what makes the network."""
    found = [*pieces()]
    for number, (name, piece) in enumerate(pieces().items()):
        for engine in ENGINES:
            yield _network(name, piece, f"engine={engine}")
        if more := MORE[number % len(MORE)]:
            yield _network(name, piece, f"engine={ENGINES[number // len(MORE) % 2]}", *more)
    rng = np.random.default_rng(0)
    for number in range(PAIRS):
        one, other = (found[place] for place in sorted(rng.choice(len(found), 2, replace=False)))
        more = MORE[number % len(MORE)]
        yield _network(f"{one}; {other}", _both(one, other), f"engine={ENGINES[number // len(MORE) % 2]}", *more)
    for factory in NAMED:
        yield _network("nothing odd", {}, f"model.factory={factory}", "engine=loop")
    for arguments in ARGUMENTS:
        yield _network("nothing odd", {}, f"model.arguments={arguments}", "engine=loop")


def text(piece: Piece) -> str:
    """The module with these lines in their places."""
    lines = {place: indent(piece.get(place, ""), "    " * depth) for place, depth in DEPTHS.items()}
    return TEXT.format(**lines)


def _both(one: str, other: str) -> Piece:
    first, second = pieces()[one], pieces()[other]
    if set(first) & set(second) & {"method", "factory", "change"} or "self.layer" in first.get("init", ""):
        second = {place: lines.replace("self.layer", "self.layer2") for place, lines in second.items()}
    return {place: f"{first.get(place, '')}\n{second.get(place, '')}".strip("\n") for place in DEPTHS}


def _network(what: str, piece: Piece, *more: str) -> Input:
    prepare = written("net.py", lambda: text(piece).encode(errors="surrogateescape"))
    words = unless_given((*WORDS, "model=torch", "model.factory=net:make", "engine.workers=1"), more)
    late, unrepeatable = (any(part in what for part in parts) for parts in (LATE, UNREPEATABLE))
    demand = partial(_whole if unrepeatable else _equal, words, late=late)
    act = partial(beside_modules, run_of(*words).act)
    return Input(f"fedexp run {' '.join(words)}  (net.py with {what})", act, demand, prepare, warns=True)


def _whole(words: tuple[str, ...], folder: Path, *, late: bool) -> str:
    """What is wrong with a run of these words: some rounds are missing, or it was refused and left a folder."""
    if (folder / "run" / "summary.json").exists():
        return whole_or_nothing(folder)
    began = late or not (folder / "run").exists() or has_rounds(folder / "run")
    return "" if began else f"failed, but left a folder without rounds: {words[-1]}"


def _equal(words: tuple[str, ...], folder: Path, *, late: bool) -> str:
    """What differs on two workers and with other pieces of test examples; empty where nothing does or nothing ran."""
    if (short := _whole(words, folder, late=late)) or not (folder / "run" / "summary.json").exists():
        return short
    (folder / "run").rename(folder / "two")
    alone = (folder / "said.txt").read_text(errors="replace").splitlines()
    again = (*(word for word in words if word != "engine.workers=1"), "engine.workers=2", "engine.evaluation_chunk=5")
    code, said = outcome(folder, partial(apart, partial(beside_modules, run_of(*again).act)), LIMIT_S)
    ends = [[line for line in lines if line.startswith("fedexp: ")] for lines in (alone, said)]
    if ends[0] != ends[1] or bool(code) != bool(ends[1]):
        return f"one worker says {ends[0]}, but with two the exit code is {code}: {' / '.join(said)[-500:]}"
    one, two = (folder / name / "digests.csv" for name in ("two", "run"))
    if (
        "engine=stacked" not in words and one.read_bytes() != two.read_bytes()
    ):  # its kernels go by how many rows there are
        return "the models of one worker and of two differ"
    return differing(*((folder / name / "metrics.csv") for name in ("two", "run")))


def differing(one: Path, other: Path) -> str:
    """The first measure of two tables that differs by more than a rounding."""
    rows = zip_longest(*(csv.DictReader(path.read_text().splitlines()) for path in (one, other)))
    for left, right in rows:
        if left is None or right is None:
            return "one worker and two come to different numbers of rounds"
        for name in ("test_loss", "test_accuracy"):
            pair = [float(row[name] or "nan") for row in (left, right)]
            pair = [np.nan if abs(value) > HUGE else value for value in pair]
            if not np.isclose(*pair, atol=1e-4, rtol=1e-3, equal_nan=True):
                return f"{name} of one worker is {left[name]}, of two in other pieces {right[name]}"
    return ""
