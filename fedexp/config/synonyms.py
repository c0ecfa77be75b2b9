"""Words of papers and other tools, and what to write for them here.

A word is compared without case, blanks, dashes and underscores. It is looked up only after it was refused. In braces
stands a value for example, instead of which the user's own is told where it fits.
"""

import re
import shlex
from collections.abc import Mapping
from contextlib import suppress

from fedexp.core.errors import normalize_word

OPTIONS: Mapping[str, Mapping[str, str]] = {
    "dataset": {
        **{
            name.lower(): f"dataset=torchvision dataset.name={name}"
            for name in ("CIFAR100", "FashionMNIST", "KMNIST", "SVHN", "USPS")
        },
        "fmnist": "dataset=torchvision dataset.name=FashionMNIST",
        "emnist": "dataset=torchvision dataset.name=EMNIST dataset.split=balanced",
        "femnist": "dataset=leaf dataset.path=FOLDER",
        "shakespeare": "dataset=leaf dataset.path=FOLDER dataset.name=shakespeare",
        "csv": "dataset=table dataset.file=FILE dataset.target=COLUMN",
        "tabular": "dataset=table dataset.file=FILE dataset.target=COLUMN",
        **dict.fromkeys(("hapt", "ucihapt", "ucihar"), "dataset=har"),
        "numpy": "dataset=npz dataset.path=FILE",
    },
    "federation": {
        "noniid": "federation=dirichlet federation.alpha=0.5",
        "lda": "federation=dirichlet",
        "pathological": "federation=shards",
        "natural": "federation=subject",
        "homogeneous": "federation=iid",
        "uniform": "federation=iid",
    },
    "model": {
        "cnn": "model=simple_cnn",
        "2nn": "model=mlp 'model.hidden=[200,200]'",
        "lr": "model=logistic",
        "logisticregression": "model=logistic",
        "linear": "model=logistic",
        "lenet5": "model=lenet",
        "vgg": "model=vgg11",
        "lstm": "model=char_lstm",
        "resnet": "model=torchvision model.name=resnet18",
        **{
            name: f"model=torchvision model.name={name}"
            for name in ("resnet18", "resnet34", "resnet50", "vgg16", "densenet121", "alexnet")
        },
        "haptcnn": "model=har_cnn",
        "mobilenet": "model=torchvision model.name=mobilenet_v2",
        "mobilenetv2": "model=torchvision model.name=mobilenet_v2",
    },
    "algorithm": {
        "moon": "local=moon",
        "fedlc": "local=fedlc",
        "fedopt": "algorithm=fedadam, fedyogi or fedadagrad",
        "ifca": "clustering=ifca",
        "greedyfed": "selector=greedyfed",
        "afl": "selector=afl",
        "ucb": "selector=ucb",
        "sfedavg": "selector=s_fedavg",
        "fedcs": "selector=fedcs",
        "hybridfl": "selector=hybridfl",
        "dynhybridfl": "selector=dyn_hybridfl",
        "powerofchoice": "selector=power_of_choice",
        "oort": "selector=oort",
        "bulyan": "aggregator=bulyan",
        "multikrum": "aggregator=multi_krum",
        "geometricmedian": "aggregator=geometric_median",
        "rfa": "aggregator=geometric_median",
        "dpfedavg": "privacy=client_central",
        "mean": "algorithm=fedavg",
        "fed+": "algorithm=fedplus",
        "random": "selector=random",
        "shapley": "selector=greedyfed or s_fedavg",
        **dict.fromkeys(("qffl", "qfedsgd"), "algorithm=qfedavg"),
        **dict.fromkeys(("tilted", "tiltederm", "tiltedloss"), "algorithm=term"),
        **dict.fromkeys(("drfa", "agnosticfl", "minimax"), "algorithm=agnostic"),
        "clustered": "clustering=output_similarity, kmeans_updates or ifca",
        **dict.fromkeys(("dp", "private"), "algorithm=dp_sgd"),
        **dict.fromkeys(("centralized", "centralised", "centralizedtraining", "pooled"), "algorithm=central"),
        **dict.fromkeys(("standalone", "localonly", "localtraining", "isolated", "silo"), "algorithm=local"),
    },
    "aggregator": {
        "mean": "aggregator=fedavg",
        "average": "aggregator=fedavg",
        "fedsgd": "algorithm=fedsgd",
        "rfa": "aggregator=geometric_median",
        **{name: f"server_optimizer={name.removeprefix('fed')}" for name in ("fedadam", "fedyogi", "fedadagrad")},
        "fedavgm": "server_optimizer=momentum",
        "fedprox": "algorithm=fedprox",
        "scaffold": "algorithm=scaffold",
        "secagg": "aggregator=secure_mean",
        "qffl": "algorithm=qfedavg",
        "tilted": "algorithm=term",
        "drfa": "algorithm=agnostic",
        **dict.fromkeys(("fed+", "fedplus"), "algorithm=fedplus"),
        "fedexp": "aggregator=extrapolation",
    },
    "local": {
        "fedprox": "local=prox",
        "fed+": "algorithm=fedplus",
        "momentum": "local=sgd local.momentum=0.9",
        **dict.fromkeys(("dp", "dpsgd"), "privacy=dp_sgd"),
    },
    "loss": {"ce": "loss=cross_entropy", "crossentropyloss": "loss=cross_entropy", "l1": "loss=mae", "l2": "loss=mse"},
    "attack": {
        "byzantine": "attack=sign_flip, gaussian, alie or ipm",
        "labelflipping": "attack=label_flip",
        "signflipping": "attack=sign_flip",
        "noise": "attack=gaussian",
        "random": "attack=gaussian",
    },
    "privacy": {
        "dp": "privacy=dp_sgd, client_central or client_local",
        "central": "privacy=client_central",
        "local": "privacy=client_local",
    },
    "availability": {
        "ln": "availability=lognormal",
        "sln": "availability=sin_lognormal",
        **dict.fromkeys(("churn", "random", "onoff"), "availability=markov"),
        **dict.fromkeys(("diurnal", "daily"), "availability=day"),
        "file": "availability=trace availability.path=FILE",
    },
    "fleet": {
        **dict.fromkeys(("straggler", "stragglers", "heterogeneous"), "fleet=simulated fleet.speed_spread=1"),
        "churn": "availability=markov",
    },
    "selector": {
        "uniform": "selector=random",
        "poc": "selector=power_of_choice",
        "shapley": "selector=greedyfed or s_fedavg",
    },
    "server_optimizer": {
        "sgd": "server_optimizer=replace",
        "none": "server_optimizer=replace",
        "fedexp": "algorithm=fedexp",
    },
    "engine": {name: f"engine.device={name}" for name in ("cuda", "cpu", "gpu")} | {"gpu": "engine.device=cuda"},
}

KEYS: Mapping[str, str] = {
    "optimizer": "local=sgd, adam, adamw or rmsprop of the clients, server_optimizer=... of the server",
    "optim": "local=sgd, adam, adamw or rmsprop of the clients, server_optimizer=... of the server",
    "scheduler": "schedule=cosine",
    "lrscheduler": "schedule=cosine",
    "alpha": "federation=dirichlet federation.alpha={0.1}",
    "beta": "federation=dirichlet federation.alpha={0.1}",
    "dirichlet": "federation=dirichlet federation.alpha={0.1}",
    "iid": "federation=iid",
    "partitioner": "federation=...",
    "mu": "algorithm=fedprox local.mu={0.01}",
    "strategy": "algorithm=... or aggregator=...",
    "method": "algorithm=...",
    "algo": "algorithm=...",
    "gpu": "engine.device=cuda",
    "cuda": "engine.device=cuda",
    "epsilon": "privacy=dp_sgd privacy.clip=1 privacy.epsilon={3} privacy.delta=1e-5",
    "dp": "privacy=dp_sgd privacy.clip=1 privacy.epsilon=3 privacy.delta=1e-5",
    "numclients": "scenario.clients={100}",
    "nclients": "scenario.clients={100}",
    "numrounds": "rounds={100}",
    "numepochs": "local.epochs={5}",
    "localepochs": "scenario.local_epochs={5}",
    "learningrate": "local.lr={0.1}",
    "fraction": "selector.fraction={0.1} selector.count=null",
    "fractionfit": "selector.fraction={0.1} selector.count=null",
    "fractiontrain": "selector.fraction={0.1} selector.count=null",
    "joinratio": "selector.fraction={0.1} selector.count=null",
    "clientfraction": "selector.fraction={0.1} selector.count=null",
    **dict.fromkeys(("dpsgd", "differentialprivacy"), "algorithm=dp_sgd"),
    **dict.fromkeys(("study", "studies"), "experiment=..., as fedexp list experiment shows"),
    **dict.fromkeys(
        ("straggler", "stragglers"), "fleet=simulated fleet.speed_spread=1, or 'scenario.local_epochs=[1,5]'"
    ),
    **dict.fromkeys(("churn", "dropouts"), "availability=markov"),
    "name": "hydra.run.dir=outputs/{NAME}",
    "output": "hydra.run.dir={FOLDER}",
    **dict.fromkeys(("outputdir", "outdir", "out", "folder", "dir", "rundir"), "hydra.run.dir={FOLDER}"),
    "device": "engine.device={cuda}",
    "workers": "engine.workers={2}",
    "seeds": "-m seed={0,1,2}",
    "mlflow": "tracker=mlflow",
    "tensorboard": "tracker=tensorboard",
    "wandb": "tracker=wandb",
}


METRICS: Mapping[str, str] = {
    "f1": "macro_f1",
    "f1score": "macro_f1",
    "f1macro": "macro_f1",
    "auc": "auroc",
    "rocauc": "auroc",
    "prauc": "auprc",
    "averageprecision": "auprc",
    "recall": "sensitivity, or class_recall for each class",
    "tpr": "sensitivity",
    "tnr": "specificity",
    "ppv": "precision",
    "brierscore": "brier",
    "calibrationerror": "ece",
    "confusion": "confusion_matrix",
    "mse": "rmse",
    "acc": "accuracy",
}


def option_synonym(group: str, name: str) -> str | None:
    """The words that choose what others call by an option's `name`; None for a word that nobody uses."""
    return OPTIONS.get(group, {}).get(normalize_word(name))


def any_option_synonym(name: str) -> str | None:
    """The words that choose what others call by this name, in whatever group; None for a word that nobody uses."""
    words = (names.get(normalize_word(name)) for names in OPTIONS.values())
    return next(filter(None, words), None)


def key_synonym(key: str, value: str = "") -> str | None:
    """The words that set what others call by this key, to this value; None for a word that nobody uses."""
    words = KEYS.get(normalize_word(key))
    return words and re.sub(r"\{(.*?)\}", lambda match: _fitting(value, match[1]), words)


def _fitting(value: str, example: str) -> str:
    """A value that was typed if it may stand where the example does, else the example."""
    text = {"gpu": "cuda"}.get(value, value.strip("[]") if "," in example else value)
    if not text or shlex.quote(text) != text or ("," in example and "," not in text):
        return example
    return text if example.isupper() or _are_numbers(text) == _are_numbers(example) else example


def _are_numbers(text: str) -> bool:
    with suppress(ValueError):
        return bool([float(entry) for entry in text.split(",")])
    return False


def metric_synonym(word: str) -> str | None:
    """What to write for a metric that is unknown here; None if nobody knows the word."""
    return METRICS.get(normalize_word(word))
