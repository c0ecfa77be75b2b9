"""Keys and metrics of papers and other tools, and what to write for them.

In braces stands a value for example, instead of which the user's own is told where it fits.
"""

from collections.abc import Mapping

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
