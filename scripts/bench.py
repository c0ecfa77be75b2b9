"""Seconds a round of every engine against a plain PyTorch loop, as ratios in one run.

    python scripts/bench.py                          # W1, W2, W3 on this machine's cores
    python scripts/bench.py --workloads W3,pfl --device cuda  # pfl: the CIFAR-10 benchmark of pfl-research
    python scripts/bench.py --workloads million      # a round at N = 1,000,000 against N = 1,000
    python scripts/bench.py --workloads everybody    # all of 1,000, 10,000 and 100,000 clients in each round
    python scripts/bench.py --workloads aggregators  # robust rules, byzfl beside: bench_aggregators.py
    python scripts/bench.py --workloads private      # DP-SGD, Opacus beside: bench_private.py
    python scripts/bench.py --variants plain:2,auto:2,peer:pfl  # another library beside: bench_peers.py

Each measurement is a process of its own; the variants of a workload take turns, several times, and the median of each
is compared with the median of the plain loop. The plain loop is what one writes by hand: one reused model,
torch.optim, tensor slices, no data loader, evaluation in chunks of 500.
"""

import argparse
import csv
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedexp.simulation.world import World
    from fedexp.training.loop.trainer import Task

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Workload:
    """Clients, examples of each, participants a round, and how they train."""

    clients: int
    examples: int
    shape: tuple[int, ...]
    model: str
    participants: int
    epochs: int
    optimizer: str
    lr: float
    test: int
    rounds: int
    batch: int = 20
    every: int = 1  # rounds between two evaluations


SCALES = {  # measurements without a plain loop beside
    "million": ["clients:1000", "clients:1000000"],
    "everybody": ["everybody:1000", "everybody:10000", "everybody:100000"],
}
WORKLOADS = {
    "W1": Workload(100, 450, (3, 32, 32), "simple_cnn", 6, 5, "adam", 1e-3, 10_000, 4),
    "W2": Workload(300, 720, (1, 28, 28), "mlp", 3, 5, "adam", 1e-3, 40_000, 10),
    "W3": Workload(1000, 45, (3, 32, 32), "simple_cnn", 100, 1, "sgd", 0.1, 10_000, 4),
    "pfl": Workload(1000, 50, (3, 32, 32), "pfl_cnn", 50, 1, "sgd", 0.1, 10_000, 10, batch=10, every=10),
}


PAGES = ("aggregators", "selectors", "coalitions", "private")  # benchmarks with a script of their own


def overrides(load: Workload) -> list[str]:
    shape = ",".join(map(str, load.shape))
    return [
        "dataset=synthetic",
        f"dataset.shape=[{shape}]",
        f"dataset.train_size={load.clients * load.examples}",
        f"dataset.test_size={load.test}",
        f"scenario.clients={load.clients}",
        f"scenario.participants={load.participants}",
        f"model={load.model}",
        f"local={load.optimizer}",
        f"local.epochs={load.epochs}",
        f"local.lr={load.lr}",
        f"local.batch_size={load.batch}",
        f"evaluation.every={load.every}",
        f"rounds={load.rounds + 1}",
    ]


def plain(load: Workload, threads: int, device: str) -> float:
    """The straightforward loop: seconds a round."""
    import torch

    from fedexp.parts.dataset.contract import Facts

    torch.set_num_threads(threads)
    network = build(overrides(load)).model.network(Facts(load.shape, 10, 0)).to(device)
    x = torch.randn((load.clients * load.examples, *load.shape), device=device)
    y = torch.randint(10, (len(x),), device=device)
    held_x = torch.randn((load.test, *load.shape), device=device)
    held_y = torch.randint(10, (load.test,), device=device)
    weights = {name: value.clone() for name, value in network.state_dict().items()}
    marks = []
    for number in range(load.rounds + 1):
        uploads = []
        for client in range(load.participants):
            first = (number * load.participants + client) % load.clients * load.examples
            own = slice(first, first + load.examples)
            network.load_state_dict(weights)
            train_plainly(network, x[own], y[own], load)
            uploads.append({name: value.clone() for name, value in network.state_dict().items()})
        weights = {name: torch.stack([up[name] for up in uploads]).mean(dim=0) for name in weights}
        network.load_state_dict(weights)
        if (number + 1) % load.every == 0:
            score_plainly(network, held_x, held_y)
        marks.append(time.perf_counter())
    return (marks[-1] - marks[0]) / load.rounds


def train_plainly(network, x, y, load: Workload) -> None:
    import torch
    from torch.nn import functional as F

    network.train()
    optimizer = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[load.optimizer](network.parameters(), lr=load.lr)
    for _ in range(load.epochs):
        order = torch.randperm(len(x), device=x.device)
        for start in range(0, len(x), load.batch):
            index = order[start : start + load.batch]
            optimizer.zero_grad()
            F.cross_entropy(network(x[index]), y[index]).backward()
            optimizer.step()


def score_plainly(network, x, y) -> float:
    import torch

    network.eval()
    with torch.no_grad():
        chunks = zip(x.split(500), y.split(500), strict=True)
        return float(sum((network(images).argmax(dim=1) == labels).sum() for images, labels in chunks) / len(x))


def build(words: list[str]):
    """The experiment of these overrides."""
    from hydra import compose, initialize_config_dir

    from fedexp.config.compose import register_resolvers, resolve_config
    from fedexp.config.location import conf_dir
    from fedexp.core import part

    register_resolvers()
    with initialize_config_dir(config_dir=str(conf_dir()), version_base="1.3"):
        return part.build(resolve_config(compose("config", words)))


def world_of(words: list[str]) -> "World":
    """The world of the experiment of these overrides, `world.exp`."""
    from fedexp.simulation.build_world import build_world
    from fedexp.training.workers.pool import WorkerPool

    return build_world(build(words), None, WorkerPool())


def first_task(world: "World") -> "Task":
    """What the first clients train in the first round."""
    import numpy as np

    from fedexp.simulation import context
    from fedexp.simulation.local_task import make_task
    from fedexp.training.client.batches import draw_batches

    ctx, exp = context.make_context(world, 1), world.exp
    plan = ctx.plan(np.arange(exp.scenario.participants))
    batches = tuple(
        draw_batches(exp.local, len(shard), ctx.rng("batches", int(client)))
        for client, shard in zip(plan.owner, plan.shards, strict=True)
    )
    return make_task(exp, world.first.flat.expand(len(plan.owner), -1), plan, batches, {}, ctx)


def ours(words: list[str], rounds: int) -> dict[str, float]:
    """Seconds a round of fedexp after the first one, and what it took to get there."""
    begun = time.perf_counter()
    from fedexp.simulation.rounds import run_rounds, with_workers

    world = world_of(words)
    with with_workers(world.exp, world, world.initial_state()) as world:
        marks = [time.perf_counter() for _ in run_rounds(world.exp, world, world.initial_state())]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "round_s": (marks[-1] - marks[0]) / rounds,
        "first_round_s": marks[0] - begun,
        "total_s": marks[-1] - begun,
        "peak_mb": peak,
    }


def many_clients(kind: str, clients: int) -> list[str]:
    """So many clients, of whom ten take part in a round with five steps, or everybody with two examples and a step."""
    words = ["dataset=synthetic", "dataset.shape=[8]", f"scenario.clients={clients}", "engine.workers=1"]
    if kind == "everybody":
        return [*words, f"dataset.train_size={2 * clients}", f"scenario.participants={clients}", "rounds=4"]
    few = ["scenario.participants=10", "local.epochs=null", "local.steps=5", "local.batch_size=1", "engine=loop"]
    return [*words, "dataset.train_size=1000000", *few, "rounds=10"]


def measure(what: str, workload: str, device: str) -> dict[str, float]:
    """One measurement in this process: plain:THREADS, ENGINE:WORKERS, peer:NAME, clients:N or everybody:N."""
    kind, _, number = what.partition(":")
    if kind in ("clients", "everybody"):
        return ours(many_clients(kind, int(number)), 3 if kind == "everybody" else 9)
    load = WORKLOADS[workload]
    if kind == "plain":
        return {"round_s": plain(load, int(number), device)}
    if kind == "peer":
        from bench_peers import PEERS

        return {"round_s": PEERS[number](load)}
    words = [*overrides(load), f"engine={kind}", f"engine.workers={number}", f"engine.device={device}"]
    return ours(words, load.rounds)


def in_a_process(what: str, workload: str, device: str) -> dict[str, float]:
    command = [__file__, "--measure", what, "--workloads", workload, "--device", device]
    kind, _, number = what.partition(":")
    return last_line(command, number if kind == "plain" else str(os.cpu_count()) if kind == "peer" else "1")


def last_line(words: list[str], threads: str = "1") -> Any:
    """What a Python process with so many threads says in its last line, as JSON."""
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "MPLBACKEND": "Agg"}
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def in_turns(calls: Mapping[Any, Callable[[], object]], turns: int) -> dict[Any, list[float]]:
    """Seconds that each of the calls takes, of so many turns in which all of them are made."""
    seconds: dict[Any, list[float]] = {name: [] for name in calls}
    for _ in range(turns):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - begun)
    return seconds


def write_rows(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Writes rows of the same columns into a CSV file and onto the screen, each as soon as it is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = None
        for row in rows:
            if writer is None:
                writer = csv.DictWriter(file, list(row))
                writer.writeheader()
            writer.writerow(row)
            file.flush()
            print("  ".join(f"{key}={value}" for key, value in row.items()), flush=True)
    print(f"written to {path}")


def compare(workload: str, variants: list[str], turns: int, device: str) -> list[dict[str, object]]:
    """Median seconds of every variant, and its ratio to every plain loop of the same run."""
    seen: dict[str, list[dict[str, float]]] = {variant: [] for variant in variants}
    for _ in range(turns):
        for variant in variants:
            seen[variant].append(in_a_process(variant, workload, device))
    median = {name: statistics.median(one["round_s"] for one in values) for name, values in seen.items()}
    baselines = [name for name in variants if name.startswith("plain")] or variants[:1]
    rows = []
    for name, values in seen.items():
        row: dict[str, object] = {"workload": workload, "variant": name, "round_s": round(median[name], 4)}
        row |= {f"ratio_to_{base}": round(median[name] / median[base], 3) for base in baselines}
        for extra in ("first_round_s", "total_s", "peak_mb"):
            if extra in values[0]:
                row[extra] = round(statistics.median(one[extra] for one in values), 2)
        rows.append(row)
        print("  ".join(f"{key}={value}" for key, value in row.items()), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--workloads", default="W1,W2,W3", help="comma-separated: W1, W2, W3, million, everybody, " + ", ".join(PAGES)
    )
    parser.add_argument(
        "--variants",
        default=None,
        help="comma-separated: plain:THREADS, loop|stacked|auto:WORKERS, peer:NAME",
    )
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--out", type=Path, default=Path("outputs/bench.csv"))
    parser.add_argument("--measure", default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        os.environ.setdefault("FEDEXP_CACHE", tempfile.mkdtemp())
        print(json.dumps(measure(arguments.measure, arguments.workloads, arguments.device)))
        return
    loads = arguments.workloads.split(",")
    for name in [name for name in loads if name in PAGES]:
        subprocess.run([sys.executable, ROOT / "scripts" / f"bench_{name}.py"], check=True)
        loads.remove(name)
    if not loads:
        return
    cpu = ["plain:1", "plain:2", "loop:1", "stacked:1", "auto:1", "auto:2"]
    rows = []
    for workload in loads:
        default = ["plain:1", "loop:1", "stacked:1"] if arguments.device == "cuda" else cpu
        default = SCALES.get(workload, default)
        variants = arguments.variants.split(",") if arguments.variants else default
        rows += compare(workload, variants, arguments.turns, arguments.device)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with arguments.out.open("w", newline="") as file:
        columns = list(dict.fromkeys(key for row in rows for key in row))
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    print(f"written to {arguments.out}")


if __name__ == "__main__":
    main()
