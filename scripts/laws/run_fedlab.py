"""Runs an algorithm of FedLab's contrib on the quadratics: python run_fedlab.py METHOD STEPS ROUNDS RATE."""

import sys
from importlib import import_module

import problem
from torch.utils.data import DataLoader, TensorDataset

METHODS = {
    "fedavg": ("fedavg", "FedAvgServerHandler", "FedAvgSerialClientTrainer", None, {}),
    "prox": ("fedprox", "FedProxServerHandler", "FedProxSerialClientTrainer", None, {"mu": 1.0}),
    "prox_0": ("fedprox", "FedProxServerHandler", "FedProxSerialClientTrainer", None, {"mu": 0.0}),
    "scaffold": ("scaffold", "ScaffoldServerHandler", "ScaffoldSerialClientTrainer", {"lr": 1.0}, {}),
    "feddyn": ("feddyn", "FedDynServerHandler", "FedDynSerialClientTrainer", {"alpha": 1.0}, {"alpha": 1.0}),
    "fednova": ("fednova", "FedNovaServerHandler", "FedNovaSerialClientTrainer", {}, {}),
    "ditto": ("ditto", "DittoServerHandler", "DittoSerialClientTrainer", None, {}),
}


class Data:
    """The clients' examples, by the method that the trainers call."""

    def get_dataloader(self, client: int, batch_size: int) -> DataLoader:
        """All examples of a client, batch by batch."""
        return DataLoader(TensorDataset(*problem.client_data(client)), batch_size)


def main(method: str, steps: str, rounds: str, rate: str) -> None:
    """Runs the standalone pipeline and prints its last model."""
    problem.replace_cross_entropy()
    from fedlab.core.standalone import StandalonePipeline  # type: ignore[import-not-found]

    file, server, client, server_words, client_words = METHODS[method]
    module = import_module(f"fedlab.contrib.algorithm.{file}")
    handler = getattr(module, server)(problem.PlaneModel(), int(rounds), 1.0)
    trainer = getattr(module, client)(problem.PlaneModel(), len(problem.MINIMA))
    if server_words is not None:
        handler.setup_optim(**server_words)
    trainer.setup_dataset(Data())
    trainer.setup_optim(int(steps), problem.EXAMPLES, float(rate), **client_words)
    StandalonePipeline(handler, trainer).main()
    problem.print_model(handler.model.parameters())


if __name__ == "__main__":
    main(*sys.argv[1:])
