"""Measures on a GPU what the stacked engine's rules guess, and whole rounds beside a loop by hand.

    python scripts/bench_gpu.py convolutions  # every implementation of the rows' convolutions, forwards and backwards
    python scripts/bench_gpu.py passes        # a step of the written-out passes beside one of vmap, both captured
    python scripts/bench_gpu.py rounds        # W1, W2, W3 and pfl's CIFAR-10 benchmark, beside a loop by hand
    python scripts/bench_gpu.py robust        # ByzFL's published robust training, one run and eight at once

`aligned` is `unfolded` with lines of a multiple of eight numbers. Each part writes a table, a line at a time. A
captured graph is replayed several times between two events; rounds are timed by the host, which waits for the numbers
of each. All lines of a table come from one process.
"""

import argparse
import itertools
import statistics
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from bench import WORKLOADS, Workload, first_task, ours, overrides, plain, world_of, write_rows
from torch import nn

from fedexp.training.client.precision import make_deterministic
from fedexp.training.layers.kinds.convolution.batched import IMPLEMENTATIONS
from fedexp.training.layers.kinds.convolution.choice import choose_implementation
from fedexp.training.layers.kinds.convolution.spec import ConvolutionSpec
from fedexp.training.layers.layer_pass import BatchedContext
from fedexp.training.stacked import trainer

ON_GPU = ["engine=stacked", "engine.workers=1", "engine.device=cuda"]
PRECISIONS = ("float32", "tf32", "bf16")
MEMORY_MB = 40_000
REPLAYS = 5
CONVOLUTIONS = (  # model, input, outputs, kernel, stride, padding
    ("simple_cnn 1", (3, 32, 32), 8, 4, 1, 1),
    ("simple_cnn 2", (8, 15, 15), 8, 4, 1, 1),
    ("cnn_2017 1", (1, 28, 28), 32, 5, 1, 2),
    ("cnn_2017 2", (32, 14, 14), 64, 5, 1, 2),
    ("pfl_cnn 1", (3, 32, 32), 32, 3, 1, 0),
    ("pfl_cnn 2", (32, 30, 30), 64, 3, 1, 0),
    ("complex_cnn 4", (64, 16, 16), 128, 3, 1, 1),
    ("resnet18_gn 1", (64, 32, 32), 64, 3, 1, 1),
    ("resnet18_gn 2", (64, 32, 32), 128, 3, 2, 1),
    ("resnet18_gn 4", (256, 8, 8), 256, 3, 1, 1),
    ("vgg11 8", (512, 2, 2), 512, 3, 1, 1),
)
ROWS = ((10, 20), (50, 10), (100, 20))  # rows that train together, examples of a batch
MODELS = (  # model, examples' shape, rows, examples of a batch
    ("mlp", (1, 28, 28), 3, 20),
    ("mlp", (1, 28, 28), 100, 20),
    ("simple_cnn", (3, 32, 32), 6, 20),
    ("simple_cnn", (3, 32, 32), 100, 20),
    ("cnn_2017", (1, 28, 28), 10, 10),
    ("pfl_cnn", (3, 32, 32), 50, 10),
    ("complex_cnn", (3, 32, 32), 10, 20),
    ("vgg11", (3, 32, 32), 10, 20),
    ("resnet18_gn", (3, 32, 32), 10, 20),
)
BYZFL = [  # its README's first example, on images of MNIST's size
    *("dataset=synthetic", "dataset.shape=[1,28,28]", "dataset.train_size=60000", "dataset.test_size=10000"),
    *("model=byzfl_cnn", "federation=dirichlet", "federation.alpha=0.5", "scenario.clients=4", "selector=all"),
    *("scenario.participants=4", "scenario.malicious=1", "scenario.malicious_hold_data=false", "scenario.byzantine=1"),
    *("local.epochs=null", "local.steps=1", "local.batch_size=25", "local.lr=0.01", "local.momentum=0.9"),
    *("local.worker_momentum=true", "local.weight_decay=1e-4", "attack=ipm", "attack.epsilon=3"),
    *("pre_aggregation=nearest_neighbours", "pre_aggregation.clip_norm=0.2", "aggregator=trimmed_mean"),
    "evaluation.every=100",
]


def milliseconds(replay: Callable[[], None]) -> float:
    """Median time of a replay on the device."""
    times = []
    for _ in range(REPLAYS):
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        replay()
        ended.record()
        torch.cuda.synchronize()
        times.append(begun.elapsed_time(ended))
    return statistics.median(times)


def captured(call: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            call()
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        call()
    return graph


def attempt(call: Callable[[], float]) -> float | str:
    """Its milliseconds, or what went wrong."""
    try:
        return round(call(), 4)
    except (RuntimeError, torch.OutOfMemoryError) as error:
        return str(error).splitlines()[0][:80]
    finally:
        torch.cuda.empty_cache()


def convolution(way: str, spec: ConvolutionSpec, sizes: tuple[int, int], precision: str) -> float:
    """Milliseconds of a forward and a backward pass, with the gradient at the input where there are 4 channels."""
    make_deterministic(tf32=precision == "tf32")
    (rows, batch), kind = sizes, {"device": "cuda", "dtype": torch.bfloat16 if precision == "bf16" else torch.float32}
    length = spec.entries_per_output
    whole = -(-length // 8) * 8 if way == "aligned" or precision == "bf16" else length
    lines, grads = (torch.randn((rows, spec.outputs, whole), **kind)[..., :length] for _ in range(2))
    context = BatchedContext(lines, grads, {}, batch, MEMORY_MB, spec.channels > 3, None)
    layer = IMPLEMENTATIONS["unfolded" if way == "aligned" else way](spec, context)
    x = torch.randn((rows, batch, *spec.input_size, spec.channels), **kind)
    grad = torch.randn((rows, batch, *spec.output_size, spec.outputs), **kind)

    def both() -> None:
        layer.forward(x)
        layer.backward(grad)

    return milliseconds(captured(both).replay)


def convolutions() -> Iterator[dict[str, object]]:
    for (name, shape, outputs, *rest), sizes, precision in itertools.product(CONVOLUTIONS, ROWS, PRECISIONS):
        kernel, stride, padding = rest
        spec = ConvolutionSpec.of(nn.Conv2d(shape[0], outputs, kernel, stride, padding), shape)
        ways = (*IMPLEMENTATIONS, "aligned")
        yield {
            "layer": name,
            "patch": spec.patch_size,
            "outputs": outputs,
            "pixels": spec.output_size[0] ** 2,
            "rows": sizes[0],
            "batch": sizes[1],
            "precision": precision,
            **{way: attempt(partial(convolution, way, spec, sizes, precision)) for way in ways},
            "chosen": choose_implementation(spec, sizes[1], MEMORY_MB, rounds=precision != "float32"),
        }


def step(words: list[str], way: str) -> float:
    """Milliseconds of a captured step of all rows."""
    without = patch.object(trainer, "plan_layers", lambda *_: None) if way == "vmap" else nullcontext()
    with without:
        world = world_of(words)
        stacked, task = world.trainer, first_task(world)
        assert isinstance(stacked, trainer.StackedTrainer)
        (rows,) = stacked.groups(task, 1)
        stacked.run(task, rows)
        cache = stacked.buckets.graph_cache
        assert cache is not None
        shape, (bucket, graph) = next(reversed(cache.graphs.items()))
        schedule = bucket.step_schedule
        assert schedule is not None

        def replay() -> None:
            schedule.steps_done.zero_()
            graph.replay()

        return milliseconds(replay) / shape.steps_per_graph


def passes() -> Iterator[dict[str, object]]:
    for model, shape, rows, batch in MODELS:
        load = Workload(rows, 4 * batch, shape, model, rows, 1, "sgd", 0.1, 100, 1, batch)
        words = [*overrides(load), *ON_GPU]
        row: dict[str, object] = {"model": model, "rows": rows, "batch": batch}
        for way, precision in (("written", "float32"), ("vmap", "float32"), ("written", "tf32"), ("written", "bf16")):
            torch.cuda.reset_peak_memory_stats()
            run = [*words, f"engine.precision={precision}"]
            row[f"{way}_{precision}"] = attempt(partial(step, run, way))
            if precision == "float32":
                row[f"{way}_mb"] = round(torch.cuda.max_memory_allocated() / 1e6)
        yield row


def as_pytorch_is() -> None:
    """Kernels as PyTorch chooses them by itself: any, and convolutions in TF32."""
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.allow_tf32 = True


def rounds() -> Iterator[dict[str, object]]:
    for name in ("W1", "W2", "W3", "pfl"):
        load = replace(WORKLOADS[name], rounds=20)
        row: dict[str, object] = {"workload": name}
        as_pytorch_is()
        row["plain"] = round(1000 * plain(replace(load, rounds=load.every if load.every > 1 else 3), 1, "cuda"), 2)
        for precision in PRECISIONS:
            seconds = ours([*overrides(load), *ON_GPU, f"engine.precision={precision}"], load.rounds)
            row[precision] = round(1000 * seconds["round_s"], 3)
            row[f"{precision}_first"] = round(1000 * seconds["first_round_s"])
        yield row


def robust() -> Iterator[dict[str, object]]:
    words = [*BYZFL, *ON_GPU, "rounds=201"]
    yield {"runs": 1, "round_ms": round(1000 * ours(words, 200)["round_s"], 3)}
    with ProcessPoolExecutor(8, get_context("spawn")) as pool:
        found = [done.result()["round_s"] for done in [pool.submit(ours, words, 200) for _ in range(8)]]
    yield {"runs": 8, "round_ms": round(1000 * statistics.mean(found) / 8, 3)}


PARTS = {part.__name__: part for part in (convolutions, passes, rounds, robust)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=PARTS, default=[*PARTS])
    parser.add_argument("--out", type=Path, default=Path("outputs"))
    arguments = parser.parse_args()
    warnings.simplefilter("once")
    print(torch.cuda.get_device_name(), torch.__version__, flush=True)
    for name in arguments.parts:
        write_rows(arguments.out / f"gpu_{name}.csv", PARTS[name]())


if __name__ == "__main__":
    main()
