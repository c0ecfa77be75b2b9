"""Seconds a round of other libraries at the work of bench.py, as variants `peer:NAME` of one run.

    pip install fedjax pfl fluke-fl
    python scripts/bench.py --variants plain:2,auto:2,peer:fedjax,peer:pfl,peer:fluke

The same clients, network, batches of 20, optimizer and test images, each library used as its own examples use it and
with the cores that it takes by itself. FedJAX fills short batches from the next pass, fluke measures seven metrics, and
pfl runs in one process; docs/speed.md says what that means. None of them has to be installed for anything else.
"""

# pyright: reportMissingImports=false
import time
from typing import Any

import numpy as np
from bench import Workload

BATCH = 20


def data_of(load: Workload) -> tuple[list[tuple[np.ndarray, np.ndarray]], tuple[np.ndarray, np.ndarray]]:
    """Made images and labels of each client, and those of the test."""
    draw = np.random.default_rng(0)

    def examples(size: int) -> tuple[np.ndarray, np.ndarray]:
        return draw.standard_normal((size, *load.shape), dtype=np.float32), draw.integers(10, size=size)

    return [examples(load.examples) for _ in range(load.clients)], examples(load.test)


def per_round(marks: list[float]) -> float:
    """Mean seconds between the ends of rounds, the first one left out."""
    return (marks[-1] - marks[0]) / (len(marks) - 1)


def fedjax(load: Workload) -> float:
    """FedJAX's federated averaging with a network of stax, evaluated by its own `evaluate_model`."""
    import fedjax as fj
    import jax
    import jax.numpy as jnp
    from jax.example_libraries import stax

    jax.tree_map = jax.tree_util.tree_map  # FedJAX 0.0.17 calls it by the name that JAX took away
    layers = {"mlp": [stax.Flatten, stax.Dense(128), stax.Relu, stax.Dense(10)], "simple_cnn": []}[load.model]
    if not layers:
        block = (stax.GeneralConv(("NHWC", "HWIO", "NHWC"), 8, (4, 4), padding=((1, 1), (1, 1))),)
        layers = [*(2 * (*block, stax.MaxPool((2, 2), (2, 2)), stax.Relu)), stax.Flatten, stax.Dense(10)]
    start, forward = stax.serial(*layers)
    model = fj.create_model_from_stax(
        stax_init=start,
        stax_apply=forward,
        sample_shape=(-1, *load.shape[1:], load.shape[0]),
        train_loss=lambda batch, scores: fj.metrics.unreduced_cross_entropy_loss(batch["y"], scores),
        eval_metrics={"accuracy": fj.metrics.Accuracy()},
    )
    clients, (test_x, test_y) = data_of(load)
    last = lambda x: np.ascontiguousarray(np.moveaxis(x, 1, -1))  # noqa: E731
    people = [fj.ClientDataset({"x": last(x), "y": y}) for x, y in clients]
    batches = fj.ClientDataset({"x": last(test_x), "y": test_y}).padded_batch(batch_size=500)
    optimizer = {"adam": fj.optimizers.adam, "sgd": fj.optimizers.sgd}[load.optimizer](load.lr)
    settings = fj.ShuffleRepeatBatchHParams(batch_size=BATCH, num_epochs=load.epochs, drop_remainder=False)
    gradient = fj.model_grad(model)
    rule = fj.algorithms.fed_avg.federated_averaging(gradient, optimizer, fj.optimizers.sgd(1.0), settings)
    state, marks = rule.init(model.init(jax.random.PRNGKey(0))), []
    for number in range(load.rounds + 1):
        asked = [(number * load.participants + k) % load.clients for k in range(load.participants)]
        keys = jax.random.split(jax.random.PRNGKey(number), len(asked))
        state, _ = rule.apply(state, [(str(k), people[k], key) for k, key in zip(asked, keys, strict=True)])
        jnp.asarray(fj.evaluate_model(model, state.params, batches)["accuracy"]).block_until_ready()
        marks.append(time.perf_counter())
    return per_round(marks)


def torch_network(load: Workload) -> Any:
    """The network of the workload as a module of PyTorch."""
    from torch import nn

    if load.model == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(load.shape)), 128), nn.ReLU(), nn.Linear(128, 10))
    blocks = []
    for channels in (load.shape[0], 8):
        blocks += [nn.Conv2d(channels, 8, 4, padding=1), nn.MaxPool2d(2), nn.ReLU()]
    return nn.Sequential(*blocks, nn.Flatten(), nn.LazyLinear(10))


def ready_network(load: Workload) -> Any:
    """The same, with the shapes of all its layers."""
    import torch

    network = torch_network(load)
    network(torch.zeros(2, *load.shape))
    return network


def pfl(load: Workload) -> float:
    """pfl-research's simulated backend on PyTorch, evaluated by its callback for central data."""
    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.callback.central_evaluation import CentralEvaluationCallback
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
    from pfl.metrics import Metrics, Weighted
    from pfl.model.pytorch import PyTorchModel

    network, marks = ready_network(load), []

    class Scored(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def loss(self, x, y, is_eval=False):
            self.eval() if is_eval else self.train()
            return torch.nn.functional.cross_entropy(self.network(x), y)

        @torch.no_grad()
        def metrics(self, x, y):
            self.eval()
            return {"accuracy": Weighted((self.network(x).argmax(1) == y).sum().item(), len(y))}

    class Mark(TrainingProcessCallback):
        def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
            marks.append(time.perf_counter())
            return False, Metrics()

    clients, test = data_of(load)
    tensors = [[torch.from_numpy(x), torch.from_numpy(y)] for x, y in clients]
    people = FederatedDataset(
        lambda user: Dataset(tensors[int(user)]),
        get_user_sampler("random", list(range(load.clients))),
    )
    settings = NNAlgorithmParams(
        central_num_iterations=load.rounds + 1,
        evaluation_frequency=load.rounds + 1,
        train_cohort_size=load.participants,
        val_cohort_size=0,
    )
    optimizer = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[load.optimizer]
    scored = Scored()
    model = PyTorchModel(scored, optimizer, torch.optim.SGD(scored.parameters(), lr=1.0))
    tests = Dataset([torch.from_numpy(array) for array in test])
    watch = CentralEvaluationCallback(tests, NNEvalHyperParams(local_batch_size=500), frequency=1)
    FederatedAveraging().run(
        settings,
        SimulatedBackend(training_data=people, val_data=None),
        model,
        NNTrainHyperParams(local_num_epochs=load.epochs, local_learning_rate=load.lr, local_batch_size=BATCH),
        NNEvalHyperParams(local_batch_size=None),
        [watch, Mark()],
    )
    return per_round(marks)


def fluke(load: Workload) -> float:
    """fluke's FedAVG, whose server evaluates every round."""
    import torch
    from fluke import DDict, FlukeENV
    from fluke.algorithms.fedavg import FedAVG
    from fluke.data import DataContainer, DataSplitter
    from fluke.evaluation import ClassificationEval
    from fluke.utils import FederationObserver

    marks: list[float] = []

    class Mark(FederationObserver):
        def end_round(self, round: int) -> None:
            marks.append(time.perf_counter())

    environment = FlukeENV()
    environment.set_seed(0)
    environment.set_device("cpu")
    environment.set_inmemory(True)
    environment.set_evaluator(ClassificationEval(eval_every=1, n_classes=10))
    environment.set_eval_cfg(server=True, locals=False, pre_fit=False, post_fit=False)
    clients, test = data_of(load)
    train = [np.concatenate(arrays) for arrays in zip(*clients, strict=True)]
    data = DataContainer(*(torch.from_numpy(array) for array in (*train, *test)), num_classes=10)
    optimizer = {"name": {"adam": "Adam", "sgd": "SGD"}[load.optimizer], "lr": load.lr}
    own = {"batch_size": BATCH, "local_epochs": load.epochs, "loss": "CrossEntropyLoss", "optimizer": optimizer}
    own["scheduler"] = {"name": "StepLR", "step_size": 1, "gamma": 1.0}
    settings = DDict(client=own, server={"weighted": True}, model=ready_network(load))
    program = FedAVG(load.clients, DataSplitter(data), settings)
    program.set_callbacks([Mark()])
    program.run(load.rounds + 1, load.participants / load.clients, finalize=False)
    return per_round(marks)


PEERS = {"fedjax": fedjax, "pfl": pfl, "fluke": fluke}
