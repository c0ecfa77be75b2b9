"""Runs an algorithm of fluke on the quadratics: python run_fluke.py METHOD STEPS ROUNDS RATE."""

import sys
from importlib import import_module

import problem

METHODS = {
    "fedavg": ("fedavg", "FedAVG", {}, {}),
    "prox": ("fedprox", "FedProx", {"mu": 1.0}, {}),
    "prox_0": ("fedprox", "FedProx", {"mu": 0.0}, {}),
    "scaffold": ("scaffold", "SCAFFOLD", {}, {}),
    "feddyn": ("feddyn", "FedDyn", {"alpha": 1.0, "clipping": 0}, {"alpha": 1.0}),
    "fednova": ("fednova", "FedNova", {}, {}),
    "ditto": ("ditto", "Ditto", {"lam": 1.0, "tau": 5}, {}),
    "apfl": ("apfl", "APFL", {"lam": 0.5}, {"tau": 1}),
    "pfedme": ("pfedme", "PFedMe", {"k": 200}, {"beta": 1.0}),
}
PERSONAL = ("ditto", "apfl")


def main(method: str, steps: str, rounds: str, rate: str) -> None:
    """Runs the algorithm and prints its last model."""
    problem.replace_cross_entropy()
    from fluke import DDict, FlukeENV  # type: ignore[import-not-found]
    from fluke.data import DataSplitter, DummyDataContainer, FastDataLoader  # type: ignore[import-not-found]
    from fluke.evaluation import ClassificationEval  # type: ignore[import-not-found]

    environment = FlukeENV()
    environment.set_seed(0)
    environment.set_device("cpu")
    environment.set_evaluator(ClassificationEval(eval_every=int(rounds), n_classes=problem.OUTPUTS))
    environment.set_eval_cfg(post_fit=False, pre_fit=False, locals=False, server=False)
    file, name, client_words, server_words = METHODS[method]
    loaders = [
        FastDataLoader(*problem.client_data(k), num_labels=problem.OUTPUTS, batch_size=problem.EXAMPLES)
        for k in range(len(problem.MINIMA))
    ]
    data = DummyDataContainer(loaders, [None] * len(loaders), None, problem.OUTPUTS)
    optimizer = {"name": "SGD", "lr": float(rate)} | ({"lamda": 1.0, "mu": 0.0} if method == "pfedme" else {})
    client = {"batch_size": problem.EXAMPLES, "local_epochs": int(steps), "loss": "CrossEntropyLoss"}
    client |= {"optimizer": optimizer, "scheduler": {"name": "StepLR", "step_size": 1, "gamma": 1}, **client_words}
    if method in PERSONAL:
        client["model"] = problem.PlaneModel()
    words = DDict(client=client, server={"weighted": True, **server_words}, model=problem.PlaneModel())
    algorithm = getattr(import_module(f"fluke.algorithms.{file}"), name)(len(loaders), DataSplitter(data), words)
    algorithm.run(int(rounds), 1.0)
    problem.print_model(algorithm.server.model.parameters())


if __name__ == "__main__":
    main(*sys.argv[1:])
