"""Seconds and memory of every robust rule, beside byzfl where that is installed.

    python scripts/bench_aggregators.py                     # all rules, written to outputs/bench_aggregators.csv
    python scripts/bench_aggregators.py krum bulyan

Seconds: the smallest of five calls at C = 100, D = 101,770 (784-128-10), one thread. Memory: the peak of one call at
C = 50, D = 1,342,122 (ComplexCNN; its BatchNorm statistics add 896 columns) above what the process held before, as a
multiple of the matrix of uploads, which is held already. A fifth of the clients is Byzantine for the rules that ask.
Each measurement is a process of its own. byzfl is asked for the nearest rule that it has, with its defaults; its Krum
counts other neighbours, its geometric median takes 3 steps, and its Zeno and Bulyan do not exist.
"""

import argparse
import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from bench import last_line, world_of, write_rows

from fedexp.simulation import context

RULES = (
    "fedavg",
    "krum",
    "multi_krum",
    "median",
    "trimmed_mean",
    "geometric_median",
    "bulyan",
    "norm_clipping",
    "centered_clipping",
    "zeno",
    "secure_mean",
    "nearest_neighbours",
    "bucketing",
    "fedplus_centre aggregator.penalty=l1",
)
MIXING = ("nearest_neighbours", "bucketing")
THEIRS = {
    "fedavg": ("Average", ()),
    "krum": ("Krum", ("f",)),
    "multi_krum": ("MultiKrum", ("f",)),
    "median": ("Median", ()),
    "trimmed_mean": ("TrMean", ("f",)),
    "geometric_median": ("GeometricMedian", ()),
    "norm_clipping": ("Clipping", ()),
    "centered_clipping": ("CenteredClipping", ()),
    "nearest_neighbours": ("NNM", ("f",)),
    "bucketing": ("Bucketing", ("s",)),
}
CASES = {
    "seconds": (100, ("dataset.shape=[1,28,28]",)),
    "memory": (50, ("dataset.shape=[3,32,32]", "model=complex_cnn")),
}


def our_call(rule: str, case: str) -> tuple[Callable[[int], object], int]:
    """A call of the rule on so many rows, and the bytes of a row."""
    import numpy as np
    import torch

    from fedexp.core.values import Uploads

    clients, words = CASES[case]
    chosen = f"pre_aggregation={rule}" if rule in MIXING else f"aggregator={rule}"  # and perhaps a setting of it
    made = ("dataset=synthetic", "dataset.train_size=1000", "dataset.test_size=100", "engine=loop", "engine.workers=1")
    asked = (f"scenario.clients={clients}", f"scenario.malicious={clients // 5}")
    world = world_of([*made, *words, *asked, *chosen.split()])
    matrix = torch.randn(clients, world.layout.size, generator=torch.Generator().manual_seed(0)).mul_(0.01)
    owner = np.arange(clients)
    ones = np.ones(clients)
    uploads, ctx = Uploads(owner, owner * 0, owner * 0 + 20, ones, matrix, ones, ones), context.make_context(world, 1)

    def call(rows: int) -> object:
        some = uploads if rows == clients else uploads.where(np.arange(rows))
        if rule in MIXING:
            return world.exp.pre_aggregation.mix(some, {}, ctx)
        return world.exp.aggregator.combine(world.first, some, {}, ctx)

    return call, 4 * world.layout.size


def their_call(rule: str, case: str) -> tuple[Callable[[int], object], int]:
    """Like `our_call`, by byzfl."""
    import byzfl  # pyright: ignore[reportMissingImports]
    import torch

    clients, size = (100, 101_770) if case == "seconds" else (50, 1_343_018)
    name, fields = THEIRS[rule]
    values = {"f": clients // 5, "s": 2}
    matrix = torch.randn(clients, size, generator=torch.Generator().manual_seed(0)).mul_(0.01)
    theirs = getattr(byzfl, name)(**{field: values[field] for field in fields})
    return lambda rows: theirs(matrix[:rows]), 4 * size


def measure(rule: str, whose: str, case: str) -> float:
    """One number, in this process."""
    import torch

    torch.set_num_threads(1)
    call, bytes_a_row = (our_call if whose == "fedexp" else their_call)(rule, case)
    clients = CASES[case][0]
    if case == "seconds":
        marks = []
        for _ in range(6):
            begun = time.perf_counter()
            call(clients)
            marks.append(time.perf_counter() - begun)
        return round(min(marks[1:]), 4)
    call(clients // 2)
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = resident("VmRSS")
    call(clients)
    return round((resident("VmHWM") - before) / (bytes_a_row * clients), 2)


def resident(name: str) -> int:
    """A line of this process's memory, in bytes (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def in_a_process(rule: str, whose: str, case: str) -> float | None:
    if whose == "byzfl" and (rule not in THEIRS or find_spec("byzfl") is None):
        return None
    return last_line([__file__, rule, "--measure", f"{whose}:{case}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", nargs="*", default=RULES)
    parser.add_argument("--out", type=Path, default=Path("outputs/bench_aggregators.csv"))
    parser.add_argument("--measure", default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.rules[0], *arguments.measure.split(":"))))
        return
    columns = [f"{whose}_{case}" for case in CASES for whose in ("fedexp", "byzfl")]
    rows = (
        {"rule": rule} | {name: in_a_process(rule, *name.split("_")) for name in columns} for rule in arguments.rules
    )
    write_rows(arguments.out, rows)


if __name__ == "__main__":
    main()
