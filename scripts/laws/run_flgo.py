"""Runs an algorithm of FLGo on the quadratics: python run_flgo.py METHOD STEPS ROUNDS RATE.

The benchmark and the task are written into the working folder, which may be thrown away.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import problem

METHODS = {
    "fedavg": ("fedavg", ()),
    "prox": ("fedprox", (1.0,)),
    "prox_0": ("fedprox", (0.0,)),
    "scaffold": ("scaffold", ()),
    "feddyn": ("feddyn", (1.0,)),
    "fednova": ("fednova", ()),
    "ditto": ("ditto", (1.0,)),
    "mifa": ("mifa", ()),
    "qfedavg_0": ("qfedavg", (0.0,)),
}
BENCHMARK = """
import problem
from torch.utils.data import TensorDataset

train_data = TensorDataset(*problem.all_data())
test_data = train_data
get_model = problem.PlaneModel
"""


class Partition:
    """Each client has the examples of its quadratic."""

    num_clients = len(problem.MINIMA)

    def register_generator(self, generator: object) -> None:
        """Called by the program; nothing is needed of its generator."""

    def __call__(self, _: object) -> list[list[int]]:
        """The numbers of the examples of each client."""
        return [[*range(n * problem.EXAMPLES, (n + 1) * problem.EXAMPLES)] for n in range(self.num_clients)]


def main(method: str, steps: str, rounds: str, rate: str) -> None:
    """Writes the task, runs the algorithm and prints its last model."""
    sys.path.insert(0, str(Path.cwd()))
    problem.replace_cross_entropy()
    import flgo  # type: ignore[import-not-found]

    Path("plane_config.py").write_text(BENCHMARK)
    benchmark = import_module(flgo.gen_benchmark_from_file("plane", "plane_config.py"))
    flgo.gen_task_by_(benchmark, Partition(), "task")
    name, parameters = METHODS[method]
    runner = flgo.init("task", import_module(f"flgo.algorithm.{name}"), option(steps, rounds, rate, parameters))
    runner.run()
    problem.print_model(runner.model.parameters())


def option(steps: str, rounds: str, rate: str, parameters: Sequence[float]) -> dict[str, object]:
    """Everybody takes part with all examples, in steps of one batch; the rest are the program's defaults."""
    length = {"num_steps": int(steps), "num_rounds": int(rounds), "learning_rate": float(rate)}
    everybody = {"sample": "full", "proportion": 1.0, "train_holdout": 0.0, "batch_size": problem.EXAMPLES}
    return length | everybody | {"algo_para": [*parameters], "eval_interval": int(rounds), "gpu": []}


if __name__ == "__main__":
    main(*sys.argv[1:])
