"""Seconds of a step of DP-SGD against a plain one, and against Opacus doing the same work, in one process.

    python scripts/bench_private.py              # batches of 20, 64 and 256; written to outputs/bench_private.csv
    python scripts/bench_private.py --batch 64

784-128-10, 10 clients with 8 batches each, one thread. A step is one client's: gradients of all examples, clipped,
summed, noised and applied. The ways take turns; each figure is the smallest of seven rounds over the steps in it.
Opacus is asked for both of its ways, with its optimizer, noise included and batches of fixed size; plain Opacus-free
PyTorch is there as what both are measured against, beside fedexp's own plain step.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench import in_turns, world_of, write_rows

from fedexp.simulation import context

CLIENTS, STEPS, TURNS = 10, 8, 7
PRIVATE = ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-5")


def our_round(batch: int, engine: str, *more: str) -> Callable[[], object]:
    """Every client's steps by one of fedexp's engines."""
    import numpy as np

    from fedexp.training.client.batches import draw_batches
    from fedexp.training.loop.trainer import Task

    size = CLIENTS * STEPS * batch
    made = ("dataset=synthetic", "dataset.shape=[1,28,28]", f"dataset.train_size={size}", "dataset.test_size=100")
    asked = (f"scenario.clients={CLIENTS}", f"local.batch_size={batch}", f"engine={engine}", "engine.workers=1")
    world = world_of([*made, *asked, *more])
    plan = context.make_context(world, 1).plan(np.arange(CLIENTS))
    rng = np.random.default_rng(0)  # batches are cut as plain ones are: equally many examples in every step
    batches = tuple(draw_batches(world.exp.local, len(shard), rng) for shard in plan.shards)
    start = world.first.flat.expand(CLIENTS, -1)
    task = Task(start, start, plan, batches, 0, 1)
    groups = world.trainer.groups(task, 1)
    return lambda: [world.trainer.run(task, rows) for rows in groups]


def their_round(batch: int, way: str) -> Callable[[], object]:
    """Every client's steps by PyTorch alone (`plain`) or by Opacus (`hooks`, `ghost`)."""
    import torch
    from torch import nn

    x, y = torch.randn(CLIENTS * STEPS * batch, 1, 28, 28), torch.randint(10, (CLIENTS * STEPS * batch,))
    network: Any = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    descend = torch.optim.SGD(network.parameters(), lr=0.1)
    criterion: Any = nn.CrossEntropyLoss()
    if way != "plain":
        from opacus import PrivacyEngine

        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=batch)
        made: Any = PrivacyEngine().make_private(
            module=network,
            optimizer=descend,
            criterion=criterion,
            data_loader=loader,
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            poisson_sampling=False,
            grad_sample_mode=way,
        )
        network, descend = made[0], made[1]
        criterion = made[2] if way == "ghost" else criterion

    def steps() -> None:
        network.train()
        for images, labels in zip(x.split(batch), y.split(batch), strict=True):
            descend.zero_grad()
            criterion(network(images), labels).backward()
            descend.step()

    return steps


def measure(batch: int) -> Iterator[dict[str, object]]:
    """Milliseconds a client's step of every way, and its ratio to fedexp's plain one."""
    ways = {
        "plain loop": our_round(batch, "loop"),
        "plain stacked": our_round(batch, "stacked"),
        "DP-SGD loop": our_round(batch, "loop", *PRIVATE),
        "DP-SGD stacked": our_round(batch, "stacked", *PRIVATE),
        "PyTorch": their_round(batch, "plain"),
    }
    if find_spec("opacus") is not None:
        ways |= {f"Opacus {way}": their_round(batch, way) for way in ("hooks", "ghost")}
    best = {name: min(seconds) / (CLIENTS * STEPS) * 1e3 for name, seconds in in_turns(ways, TURNS).items()}
    for name, spent in best.items():
        yield {"batch": batch, "way": name, "step_ms": round(spent, 3), "ratio": round(spent / best["plain loop"], 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, nargs="*", default=[20, 64, 256])
    parser.add_argument("--out", type=Path, default=Path("outputs/bench_private.csv"))
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    write_rows(arguments.out, (row for batch in arguments.batch for row in measure(batch)))


if __name__ == "__main__":
    main()
