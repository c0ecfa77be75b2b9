"""Runs on files of a user: what there may be besides the run, and that a run which is accepted does two rounds."""

import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np

from fedexp.process.exits import USAGE_ERROR
from scripts.fuzz.judged import Input, run_of

ROUNDS = 2
SMALL = ("rounds=2", "pictures=false", "engine.workers=1", "scenario.participants=2")
OURS = {"mine", "net.py", "run", "two", "said.txt", "cache", "__pycache__"}

Prepare = Callable[[Path], object]


def run_on(prepare: Prepare, what: str, *words: str, codes: tuple[int, ...] = (0, USAGE_ERROR)) -> Input:
    """A run of these words with what `prepare` puts into the folder `mine`, told as `what`."""

    def prepared(folder: Path) -> None:
        (folder / "mine").mkdir()
        prepare(folder / "mine")

    words = (*SMALL, *words)
    act = partial(beside_modules, run_of(*words).act)
    return Input(f"fedexp run {' '.join(words)}  ({what})", act, whole_or_nothing, prepared, codes=codes)


def written(name: str, content: Callable[[], bytes]) -> Prepare:
    """Puts a file of this content into the folder."""
    return lambda folder: (folder / name).write_bytes(content())


def unless_given(usual: Iterable[str], words: tuple[str, ...]) -> tuple[str, ...]:
    """The usual words whose keys none of these words sets, and these."""
    given = {word.partition("=")[0] for word in words}
    return (*(word for word in usual if word.partition("=")[0] not in given), *words)


def beside_modules(act: Callable[[], int]) -> int:
    """Does something where Python finds modules in the working directory."""
    sys.path.insert(0, str(Path.cwd()))
    return act()


def whole_or_nothing(folder: Path) -> str:
    """What is wrong with the folder: something in it is neither the user's nor the run's, or rounds are missing."""
    if odd := {path.name for path in folder.iterdir()} - OURS:
        return f"left {', '.join(sorted(odd))}"
    if not (folder / "run").exists():
        return ""
    table = folder / "run" / "metrics.csv"
    rounds = len(table.read_text().splitlines()) - 1 if table.exists() else 0
    return "" if rounds == ROUNDS else f"ended well or was refused, but made {rounds} of {ROUNDS} rounds"


def damaged(raw: bytes, number: int) -> bytes:
    """A file's bytes with a few of them changed, taken out, doubled or put in, as the number says."""
    rng = np.random.default_rng(number)
    found = bytearray(raw)
    for _ in range(int(rng.integers(1, 4))):
        place, length = int(rng.integers(len(found) + 1)), int(rng.choice((1, 2, 8, 40)))
        kind = int(rng.integers(5))
        if kind == 0 and place < len(found):
            found[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del found[place : place + length]
        elif kind == 2:
            found[place:place] = rng.bytes(length)
        elif kind == 3:
            found[place:place] = found[place : place + length]
        else:
            del found[place:]
    return bytes(found)
