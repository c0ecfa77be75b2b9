"""Tries thousands of inputs of all kinds: odd values, pairs of options, odd words, odd folders, own parts and files.

    python scripts/fuzz/all.py                          # all of them, which takes hours
    python scripts/fuzz/all.py --share 0.2 --seed 1     # about 5,000, drawn by the seed
    python scripts/fuzz/all.py --kinds pairs --part 3/10 # the third of ten parts that make up all of them
    python scripts/fuzz/all.py --kinds keys --only "selector.count=nan"

Each is done by a copy of this process with a time limit. It ends well, or with one line and the exit code 1 or 2, and a
run that is refused leaves no folder. Ends with `0 of N fall short`, else with exit code 1 and what fell short.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from scripts.forked import warm_up  # noqa: E402
from scripts.fuzz import (  # noqa: E402
    arrays,
    folders,
    leaf_folders,
    modules,
    options,
    own,
    owners,
    strangers,
    tables,
    texts,
    weights,
)
from scripts.fuzz.judged import Input, run_of, shortcoming  # noqa: E402
from tests import composing  # noqa: E402

KINDS: dict[str, Callable[[], Iterator[Input]]] = {
    "keys": options.keys,
    "pairs": options.pairs,
    "scribbles": options.scribbles,
    "folders": strangers.folders,
    "sweeps": strangers.sweeps,
    "answers": own.answers,
    "mistakes": own.mistakes,
    "tables": tables.tables,
    "texts": texts.texts,
    "owners": owners.owners,
    "leaf": leaf_folders.leaf_folders,
    "arrays": arrays.arrays,
    "weights": weights.weights,
    "modules": modules.modules,
    "damages": folders.damages,
}
ALL = slice(None)


@cache
def inputs(kind: str) -> list[Input]:
    """All inputs of a kind."""
    return [*KINDS[kind]()]


def drawn(kind: str, share: float, seed: int, only: str = "", part: slice = ALL) -> list[Input]:
    """A share of the inputs of a kind, at least one, in their order; of a part of those whose name holds a text."""
    found = [each for each in inputs(kind) if only in each.name][part]
    count = min(len(found), max(1, round(share * len(found))))
    chosen = np.random.default_rng(seed).choice(len(found), count, replace=False) if found else []
    return [found[number] for number in sorted(chosen)]


def part_of(text: str) -> slice:
    """Every N-th from the K-th on, as K/N: the parts 1/N to N/N are all there are, and no two share any."""
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"must be K/N with K from 1 to N, such as 3/10, got {text}")
    return slice(int(number) - 1, None, int(parts))


def ready() -> None:
    """Makes here what every copy would have to make again."""
    warm_up(run_of(*options.needed("privacy=dp_sgd"), "engine=stacked").act)
    composing.tiny()


def tried(kind: str, share: float, seed: int, only: str = "", part: slice = ALL) -> tuple[int, dict[str, str]]:
    """How many inputs there were, and those that fell short by name: what they did."""
    some = drawn(kind, share, seed, only, part)
    found = {each.name: shortcoming(each) for each in some}
    return len(some), {name: what for name, what in found.items() if what}


def main() -> int:
    """Tries them all and tells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS])
    parser.add_argument("--part", type=part_of, default=ALL, help="K/N: every N-th input, from the K-th on")
    parser.add_argument("--only", default="", help="inputs whose name holds this text")
    asked = parser.parse_args()
    ready()
    total, short = 0, 0
    for kind in asked.kinds:
        begun = time.perf_counter()
        count, found = tried(kind, asked.share, asked.seed, asked.only, asked.part)
        total, short = total + count, short + len(found)
        print(f"{kind}: {len(found)} of {count} fall short ({time.perf_counter() - begun:.0f} s)", flush=True)
        for name, what in found.items():
            print(f"  {name}\n    {what}", flush=True)
    print(f"{short} of {total} fall short")
    return int(short > 0)


if __name__ == "__main__":
    sys.exit(main())
