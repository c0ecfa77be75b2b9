"""Runs fedexp on the quadratics: python run_fedexp.py METHOD STEPS ROUNDS RATE."""

import sys
import tempfile
from pathlib import Path

import numpy as np
import problem
import torch

import fedexp
from fedexp.parts import Loss

METHODS = {
    "fedavg": ("algorithm=fedavg",),
    "prox": ("algorithm=fedprox", "local.mu=1"),
    "prox_0": ("algorithm=fedprox", "local.mu=0"),
    "scaffold": ("algorithm=scaffold",),
    "feddyn": ("algorithm=feddyn", "local.alpha=1"),
    "fednova": ("algorithm=fednova",),
    "ditto": ("algorithm=ditto", "local.lam=1"),
    "apfl": ("algorithm=apfl", "local.alpha=0.5", "local.learn_alpha=false"),
    "pfedme": ("algorithm=pfedme", "local.lam=1", "local.inner_steps=200", "local.theta_lr=0.1"),
    "mifa": ("algorithm=mifa",),
    "qfedavg_0": ("algorithm=qfedavg", "aggregator.q=0"),
}


class Quadratics(Loss):
    """The quadratics as a loss of fedexp."""

    takes = ("class",)

    def per_example(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The cost [B] of each of the outputs [B, 2] with labels [B]."""
        return problem.costs(outputs, targets)


def main(method: str, steps: str, rounds: str, rate: str) -> None:
    """Writes the data, runs fedexp and prints its last model."""
    x, y = (part.numpy() for part in problem.all_data())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "plane.npz")
        np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y, subject=y)
        option = Path(folder, "conf", "loss", "quadratics.yaml")
        option.parent.mkdir(parents=True)
        option.write_text("_target_: run_fedexp.Quadratics\n")
        words = (
            *("dataset=npz", f"dataset.path={path}", "federation=subject", "scenario.participants=2"),
            *("model=torch", "model.factory=problem:PlaneModel", "model.arguments={outputs: 2}", "loss=quadratics"),
            *(f"scenario.local_epochs={steps}", f"rounds={rounds}", f"local.lr={rate}", "evaluation.every=1000"),
            *(f"local.batch_size={problem.EXAMPLES}", *METHODS[method]),
        )
        run = fedexp.run(*words, quiet=True, folder=Path(folder, "run"), config_dir=Path(folder, "conf"))
        problem.print_model(run.model().parameters())


if __name__ == "__main__":
    main(*sys.argv[1:])
