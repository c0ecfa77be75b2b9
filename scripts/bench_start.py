"""From the command to the end of round 1, and memory at its peak, beside a plain loop on the same arrays, as ratios.

    python scripts/bench_start.py                       # W1, W2, W3 of bench.py, three turns each
    python scripts/bench_start.py --workloads W3 --turns 5

The arrays lie in an `.npz` file of float32, channels last, as `np.savez` writes it (W1 and W3: 0.68 GB). Both programs
begin with the start of Python, read the file, train one round, evaluate it on the test data and end. The plain loop has
as many threads as fedexp has workers. Memory is the sum of PSS over a program's processes, looked at every 20 ms, so
that pages which processes share count once.
"""

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from bench import WORKLOADS, Workload, overrides

LOOK_S = 0.02
PLAIN = """
import sys
import numpy as np, torch
from torch import nn
from torch.nn import functional as F
path, threads, participants, examples, epochs, optimizer, lr, model = sys.argv[1:]
torch.set_num_threads(int(threads))
with np.load(path) as file:
    x, y, held_x, held_y = (torch.from_numpy(file[name]) for name in ("x_train", "y_train", "x_test", "y_test"))
x, held_x = (each.movedim(-1, 1) for each in (x, held_x))
cnn = [nn.Conv2d(3, 8, 4, padding=1), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(8, 8, 4, padding=1), nn.MaxPool2d(2),
       nn.ReLU(), nn.Flatten(), nn.Linear(392, 10)]
mlp = [nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)]
network = nn.Sequential(*(cnn if model == "simple_cnn" else mlp))
weights, uploads = {name: value.clone() for name, value in network.state_dict().items()}, []
for client in range(int(participants)):
    network.load_state_dict(weights)
    own = slice(client * int(examples), (client + 1) * int(examples))
    inputs, labels = x[own], y[own]
    kind = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[optimizer]
    steps = kind(network.parameters(), lr=float(lr))
    for _ in range(int(epochs)):
        for index in torch.randperm(len(inputs)).split(20):
            steps.zero_grad()
            F.cross_entropy(network(inputs[index]), labels[index]).backward()
            steps.step()
    uploads.append({name: value.clone() for name, value in network.state_dict().items()})
network.load_state_dict({name: torch.stack([up[name] for up in uploads]).mean(dim=0) for name in weights})
with torch.no_grad():
    chunks = zip(held_x.split(500), held_y.split(500))
    print(sum(int((network(images).argmax(dim=1) == labels).sum()) for images, labels in chunks) / len(held_x))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="W1,W2,W3")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("outputs/bench_start.csv"))
    arguments = parser.parse_args()
    lines = []
    for name in arguments.workloads.split(","):
        load = WORKLOADS[name]
        with tempfile.TemporaryDirectory() as folder:
            path = written(load, Path(folder))
            commands = {"plain": plain(load, path, arguments.workers), "fedexp": ours(load, path, arguments.workers)}
            for turn in range(arguments.turns):
                for variant, command in commands.items():
                    seconds, peak = watched(command, Path(folder), arguments.workers if variant == "plain" else 1)
                    lines.append({"workload": name, "turn": turn, "variant": variant, "s": seconds, "pss_mb": peak})
        print(compared(name, [line for line in lines if line["workload"] == name]), flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with arguments.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(line | {"s": round(line["s"], 2), "pss_mb": round(line["pss_mb"])} for line in lines)
    print(f"written to {arguments.out}")


def written(load: Workload, folder: Path) -> Path:
    """The arrays of a workload, in a file."""
    rng, shape = np.random.default_rng(0), (*load.shape[1:], load.shape[0])
    sizes = {"train": load.clients * load.examples, "test": load.test}
    arrays = {f"x_{part}": rng.random((size, *shape), np.float32) for part, size in sizes.items()}
    arrays |= {f"y_{part}": rng.integers(10, size=size) for part, size in sizes.items()}
    np.savez(folder / "data.npz", allow_pickle=False, **arrays)
    return folder / "data.npz"


def plain(load: Workload, path: Path, threads: int) -> list[str]:
    settings = (path, threads, load.participants, load.examples, load.epochs, load.optimizer, load.lr, load.model)
    return [sys.executable, "-c", PLAIN, *map(str, settings)]


def ours(load: Workload, path: Path, workers: int) -> list[str]:
    kept = [word for word in overrides(load) if not word.startswith(("dataset", "rounds="))]
    own = ["dataset=npz", f"dataset.path={path}", "dataset.layout=channels_last", "federation=iid"]
    own += ["rounds=1", f"engine.workers={workers}"]
    return [sys.executable, "-m", "fedexp", "run", *kept, *own, "pictures=false"]


def watched(command: list[str], folder: Path, threads: int) -> tuple[float, float]:
    """Seconds from the start of a command to its end, and the most megabytes of PSS that its processes had."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    environment["FEDEXP_CACHE"] = str(folder / "cache")
    begun, peak = time.perf_counter(), 0
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        peak = max(peak, sum(pss(member) for member in family(process.pid)))
        time.sleep(LOOK_S)
    seconds = time.perf_counter() - begun
    if process.returncode:
        raise SystemExit(f"failed: {' '.join(command[-12:])}")
    return seconds, peak / 1024


def family(process: int) -> list[int]:
    """The process and its descendants."""
    found = [process]
    for member in found:
        with suppress(OSError):
            for task in Path(f"/proc/{member}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def pss(process: int) -> int:
    """Kilobytes of PSS, 0 of a process that has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def compared(name: str, lines: list[dict]) -> str:
    """Medians of both programs and their ratios, in words."""
    told = []
    for measure, unit in (("s", "s"), ("pss_mb", "MB")):
        held = {who: statistics.median(line[measure] for line in lines if line["variant"] == who) for who in SIDES}
        told.append(f"{held['fedexp']:.1f} {unit} against {held['plain']:.1f}: {held['fedexp'] / held['plain']:.2f}")
    return f"{name}: " + "; ".join(told)


SIDES = ("plain", "fedexp")

if __name__ == "__main__":
    main()
