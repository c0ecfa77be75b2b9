"""Kernels, launches, bytes and operations of a stacked round, counted on the pretend device, and the time they bound.

    PYTHONPATH=tests/pretend python scripts/count_kernels.py [W1 W2 W3 pfl]

A round is counted whose buckets are there. A kernel is an operator that the pretend device runs, with the bytes
that it reads and writes and, if it multiplies, its floating-point operations; some are two kernels on a GPU. The
roofline adds up each kernel's longer time at the rates of the vendor's data sheet of an H100 SXM. It is **an estimate
from below**, without latencies and what kernels fall short of. `pfl` is the CIFAR-10 benchmark of pfl-research: 50
users of 50 images in batches of 10.
"""

import argparse
import csv
import sys
from collections import Counter
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

pretend_device: Any = import_module("pretend_device")
pretend_device.substitute()

from bench import WORKLOADS, overrides, world_of  # noqa: E402

from fedexp.simulation import context  # noqa: E402
from fedexp.simulation.local_task import make_task  # noqa: E402
from fedexp.training.client.batches import draw_batches  # noqa: E402
from fedexp.training.stacked.graph_cache import CudaGraphCache  # noqa: E402

TIMES = {"pfl": 10}  # a tenth of its 50 participants is counted: bytes and operations are so many times as many
RATES = {"float32": 67e12, "tf32": 495e12, "bf16": 989e12}  # of matrix products, a second
BYTES_S = 3.35e12
PFL = [
    *("dataset=synthetic", "dataset.shape=[3,32,32]", "dataset.train_size=50000", "dataset.test_size=100"),
    *("scenario.clients=1000", "scenario.participants=5", "model=pfl_cnn", "local=sgd", "local.batch_size=10"),
    *("local.lr=0.1", "rounds=1500"),
]
VIEWS = (
    *("view", "expand", "permute", "transpose", "t", "slice", "select", "unsqueeze", "squeeze", "as_strided", "alias"),
    *("detach", "split", "split_with_sizes", "unbind", "unfold", "_unsafe_view", "_reshape_alias", "empty", "movedim"),
    *("empty_like", "new_empty", "empty_strided", "lift_fresh", "diagonal"),
)


class Counted(TorchDispatchMode):
    """Counts bytes and operations of every operator on the pretend device."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = self.flops = 0
        self.seconds = dict.fromkeys(RATES, 0.0)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        leaves = [each for each in tree_leaves((args, kwargs, out)) if isinstance(each, torch.Tensor)]
        if name in VIEWS or not any(each.device.type == "pretend" for each in leaves):
            return out
        moved = sum({(each.data_ptr(), each.shape, each.stride()): touched(each) for each in leaves}.values())
        if name.endswith("_") and name not in ("copy_", "fill_", "zero_"):  # what is changed in place is read, too
            changed = (args[0], *args[2:4]) if name == "_fused_adam_" else args[0]
            moved += sum(touched(each) for each in tree_leaves(changed))
        flops = operations(func, args, kwargs or {}, out)
        if name in ("index", "index_select", "gather"):  # of which only what is asked for is read
            moved -= touched(args[0]) - touched(out)
        self.bytes += moved
        self.flops += flops
        for kind, rate in RATES.items():
            self.seconds[kind] += max(moved / BYTES_S, flops / rate)
        return out


def operations(func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    """Floating-point operations of a product or convolution; PyTorch's own count of the latter forgets its groups."""
    name = func.overloadpacket.__name__
    if name == "convolution":
        return 2 * out.numel() * args[1][0].numel()
    if name == "convolution_backward":
        return 2 * args[0].numel() * args[2][0].numel() * sum(args[-1][:2])
    count = flop_registry.get(func.overloadpacket)
    return count(*args, **kwargs, out_val=out) if count else 0


def touched(x: torch.Tensor) -> int:
    """Bytes of the memory that a tensor looks at, each once."""
    if x.numel() == 0:
        return 0
    span = 1 + sum((size - 1) * step for size, step in zip(x.shape, x.stride(), strict=True))
    return min(x.numel(), span) * x.element_size()


def words(name: str) -> list[str]:
    plain = PFL if name == "pfl" else [*overrides(replace(WORKLOADS[name], test=100))]
    return [*plain, "engine=stacked", "engine.workers=1", "engine.device=pretend"]


def measured(name: str) -> dict[str, object]:
    """One round of a workload."""
    world = world_of(words(name))
    ctx, exp = context.make_context(world, 1), world.exp
    owner = np.arange(exp.scenario.participants)
    plan = ctx.plan(owner)
    batches = tuple(
        draw_batches(exp.local, len(shard), ctx.rng("batches", int(k)))
        for k, shard in zip(owner, plan.shards, strict=True)
    )
    task = make_task(exp, world.first.flat.expand(len(owner), -1), plan, batches, {}, ctx)
    groups = world.trainer.groups(task, 1)
    steps = sum(max(batches[row].steps for row in rows) for rows in groups)
    replays, counted, times = run_at_once(), Counted(), TIMES.get(name, 1)
    for rows in groups:
        world.trainer.run(task, rows)
    replays.clear()
    pretend_device.reset_counts()
    with counted:
        for rows in groups:
            world.trainer.run(task, rows)
    found = Counter(pretend_device.counts())
    waits, uploads = found.pop("sync", 0) - found.pop("wait:h2d", 0), found.pop("copy:h2d", 0)
    kernels, outside = sum(found.values()), sum(found.values()) - replays["kernels"]
    return {
        "workload": name,
        "buckets": len(groups),
        "steps": steps,
        "taken": replays["steps"],
        "kernels_a_step": round(replays["kernels"] / replays["steps"], 1),
        "kernels_a_round": kernels,
        "launches_a_round": replays["graphs"] + outside,
        "copies_to_device": uploads,
        "waits": waits,
        "MB": round(times * counted.bytes / 1e6, 1),
        "GFLOP": round(times * counted.flops / 1e9, 2),
        **{f"ms_{kind}": round(1000 * times * seconds, 3) for kind, seconds in counted.seconds.items()},
    }


def run_at_once() -> Counter[str]:
    """From now on what would be captured is run instead and counted: the pretend device's replays copy more."""
    found: Counter[str] = Counter()

    def in_all() -> int:
        return sum(count for name, count in pretend_device.counts().items() if name not in ("sync", "wait:h2d"))

    class Step:
        def __init__(self, captures: Any, bucket: Any) -> None:
            self.captures, self.bucket = captures, bucket

        def replay(self) -> None:
            before = in_all()
            self.captures.step(self.bucket)
            found["kernels"] += in_all() - before
            agenda = getattr(self.bucket, "step_schedule", None)  # commits before it had none: a step a graph
            found["graphs"] += 1
            found["steps"] += 1 if agenda is None else agenda.steps_per_graph

    CudaGraphCache._capture = lambda self, bucket: Step(self, bucket)  # type: ignore[method-assign, assignment]
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("workloads", nargs="*", default=["W1", "W2", "W3", "pfl"])
    table: csv.DictWriter | None = None
    for name in parser.parse_args().workloads:
        row = measured(name)
        if table is None:
            table = csv.DictWriter(sys.stdout, list(row))
            table.writeheader()
        table.writerow(row)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
