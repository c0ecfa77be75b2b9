"""Runs FL-bench's main.py on the quadratics: python run_fl_bench.py FOLDER METHOD STEPS ROUNDS RATE.

FOLDER is a checkout, into whose tables of data sets and models the plane is written; the last model is the one that it
writes.
"""

import json
import os
import pickle
import runpy
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import problem
import torch

METHODS = {
    "fedavg": ("fedavg", ()),
    "prox": ("fedprox", ("fedprox.mu=1",)),
    "prox_0": ("fedprox", ("fedprox.mu=0",)),
    "scaffold": ("scaffold", ()),
    "feddyn": ("feddyn", ("+feddyn.alpha=1", "+feddyn.max_grad_norm=1e9")),
    "feddyn_decay": ("feddyn", ("+feddyn.alpha=1", "+feddyn.max_grad_norm=1e9", "optimizer.weight_decay=1")),
    "ditto": ("ditto", ("+ditto.lamda=1",)),
    "apfl": ("apfl", ("+apfl.alpha=0.5", "+apfl.adaptive_alpha=0")),
    "pfedme": ("pfedme", ("+pfedme.lamda=1", "+pfedme.mu=0", "+pfedme.k=200", "+pfedme.pers_lr=0.1")),
}
RUN = (
    "common.join_ratio=1",
    "common.use_cuda=false",
    "common.save_model=true",
    "common.save_learning_curve_plot=false",
)


class Words(list):
    """The words of main.py, which appends an output folder of its own: here another one is taken."""

    def __init__(self, folder: str, words: Sequence[str]) -> None:
        super().__init__(words)
        self.folder = folder

    def append(self, _: str) -> None:
        super().append(f"hydra.run.dir={self.folder}")


def write_data(folder: Path) -> None:
    """The clients' parts, as its generate_data.py would write them."""
    folder.mkdir(parents=True, exist_ok=True)
    clients = list(range(len(problem.MINIMA)))
    starts = [client * problem.EXAMPLES for client in clients]
    parts = [{"train": [*range(start, start + problem.EXAMPLES)], "val": [], "test": []} for start in starts]
    separation = {"train": clients, "val": clients, "test": clients, "total": len(clients)}
    with (folder / "partition.pkl").open("wb") as file:
        pickle.dump({"separation": separation, "data_indices": parts}, file)
    facts = {"dataset": "plane", "client_num": len(clients), "split": "sample", "monitor_window_name_suffix": ""}
    (folder / "args.json").write_text(json.dumps(facts))


def replace_tables() -> None:
    """Adds the plane to the program's data sets and models."""
    from data.utils import datasets  # type: ignore[import-not-found]
    from src.utils import models  # type: ignore[import-not-found]

    class Plane(datasets.BaseDataset):
        def __init__(self, *, root: Path, args: object, **transforms: object) -> None:
            super().__init__(*problem.all_data(), [*range(problem.OUTPUTS)], **transforms)

    class Model(models.DecoupledModel):
        def __init__(self, **_: object) -> None:
            super().__init__()
            self.base, self.classifier = torch.nn.Identity(), problem.PlaneLayer()

    datasets.DATASETS["plane"], models.MODELS["plane"] = Plane, Model


def main(folder: str, method: str, steps: str, rounds: str, rate: str) -> None:
    """Writes the data, runs the program and prints its last model."""
    here = Path(folder).resolve()
    sys.path.insert(0, str(here))
    os.chdir(here)
    problem.replace_cross_entropy()
    write_data(here / "data" / "plane")
    replace_tables()
    name, words = METHODS[method]
    length = (f"common.local_epoch={steps}", f"common.global_epoch={rounds}", f"optimizer.lr={rate}")
    chosen = (f"method={name}", "dataset.name=plane", "model.name=plane", f"common.batch_size={problem.EXAMPLES}")
    with tempfile.TemporaryDirectory() as out:
        sys.argv = Words(out, ["main.py", *chosen, *length, *RUN, *words])
        runpy.run_path(str(here / "main.py"), run_name="__main__")
        (saved,) = Path(out).glob("*.pt")
        problem.print_model(torch.load(saved, weights_only=True).values())


if __name__ == "__main__":
    main(*sys.argv[1:])
