"""Former names of classes: older run folders hold them in every `_target_`, and lack keys that were added later.

Whoever reads a config from a folder renews it (`renewed`), so that it equals the one that is composed today.
"""

from collections.abc import Mapping
from typing import Any

# The first pair that fits counts, so a longer name stands before its beginning. `fedexp.data.` means datasets: no class
# of today's `fedexp.data` is ever a `_target_`.
MOVED = (
    ("fedexp.aggregators.", "fedexp.parts.aggregator."),
    ("fedexp.attacks.", "fedexp.parts.attack."),
    ("fedexp.audits.audit.", "fedexp.parts.audit.contract."),
    ("fedexp.audits.", "fedexp.parts.audit."),
    ("fedexp.clusterings.clustering.", "fedexp.parts.clustering.contract."),
    ("fedexp.clusterings.", "fedexp.parts.clustering."),
    ("fedexp.data.", "fedexp.parts.dataset."),
    ("fedexp.evaluation.", "fedexp.scoring.evaluation."),
    ("fedexp.experiment.", "fedexp.simulation.experiment."),
    ("fedexp.features.features.", "fedexp.parts.features.contract."),
    ("fedexp.features.", "fedexp.parts.features."),
    ("fedexp.federations.", "fedexp.parts.federation."),
    ("fedexp.fleets.", "fedexp.parts.fleet."),
    ("fedexp.launchers.", "fedexp.sweep.launchers."),
    ("fedexp.local.", "fedexp.parts.local."),
    ("fedexp.models.", "fedexp.parts.model."),
    ("fedexp.one_at_a_time.", "fedexp.config.one_at_a_time."),
    ("fedexp.pre_aggregation.", "fedexp.parts.pre_aggregation."),
    ("fedexp.pretraining.pretraining.", "fedexp.parts.pretraining.contract."),
    ("fedexp.pretraining.", "fedexp.parts.pretraining."),
    ("fedexp.privacy.privacy.", "fedexp.parts.privacy.contract."),
    ("fedexp.privacy.", "fedexp.parts.privacy."),
    ("fedexp.roles.Attack", "fedexp.parts.attack.contract.Attack"),
    ("fedexp.roles.Fleet", "fedexp.parts.fleet.contract.Fleet"),
    ("fedexp.roles.PreAggregation", "fedexp.parts.pre_aggregation.contract.PreAggregation"),
    ("fedexp.roles.ServerOptimizer", "fedexp.parts.server_optimizer.contract.ServerOptimizer"),
    ("fedexp.roles.Stop", "fedexp.parts.stop.contract.Stop"),
    ("fedexp.selectors.", "fedexp.parts.selector."),
    ("fedexp.server_optimizers.", "fedexp.parts.server_optimizer."),
    ("fedexp.shapley.", "fedexp.maths.shapley."),
    ("fedexp.stops.", "fedexp.parts.stop."),
    ("fedexp.trackers.tracker.", "fedexp.parts.tracker.contract."),
    ("fedexp.trackers.", "fedexp.parts.tracker."),
)

# Keys that were added later, with the values that earlier runs in effect had.
TARGET = "fedexp.parts.stop.target.Target"
SHAPLEY = "fedexp.maths.shapley.estimate.Shapley"
DRAWN = {"init": "default", "last_layer": None}
CLIP = {"clip_norm": None}
HEAVY_BALL = {**CLIP, "nesterov": False}
ANY = {
    **HEAVY_BALL,
    "optimizer": "sgd",
    "momentum": 0.0,
    "weight_decay": 0.0,
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
}
ADDED = {
    "fedexp.parts.local.adam.Adam": CLIP,
    "fedexp.parts.local.fedplus.FedPlus": HEAVY_BALL,
    "fedexp.parts.local.personal_layer.PersonalLayer": HEAVY_BALL,
    "fedexp.parts.local.prox.Prox": ANY,
    "fedexp.parts.local.scaffold.Scaffold": ANY,
    "fedexp.parts.local.sgd.SGD": {**HEAVY_BALL, "worker_momentum": False},
    "fedexp.parts.model.complex_cnn.ComplexCNN": DRAWN,
    "fedexp.parts.model.har_cnn.HARCNN": DRAWN,
    "fedexp.parts.model.keras_cnn.KerasCNN": DRAWN,
    "fedexp.parts.model.mlp.MLP": {**DRAWN, "dropout": 0.0},
    "fedexp.parts.model.simple_cnn.SimpleCNN": DRAWN,
    "fedexp.simulation.experiment.Experiment": {
        "loss": {
            "_target_": "fedexp.parts.loss.cross_entropy.CrossEntropy",
            "label_smoothing": 0.0,
            "class_weights": None,
        }
    },
    "fedexp.simulation.experiment.Scenario": {"local_epochs": 1, "local_lr": 0.1, "malicious_hold_data": True},
    "fedexp.scoring.evaluation.Evaluation": {"metrics": None, "own_test": False, "unseen_fraction": 0.0},
    "fedexp.parts.stop.patience.Patience": {"of": "loss"},
    **{f"fedexp.training.engine.{name}Engine": {"precision": "float32"} for name in ("Auto", "Loop", "Stacked")},
    SHAPLEY: {"coalitions": None, "examples": None, "part": 0.25, "stop": "values", "confidence": 0.95},
}


def today(target: str) -> str:
    """Today's name of a class; a name that has not moved, or is not ours, is returned as it is."""
    for before, now in MOVED:
        if target.startswith(before):
            return now + target.removeprefix(before)
    return target


def renewed(node: Any) -> Any:
    """A copy of a nested config with today's name in every `_target_`, and with the keys that were added later."""
    if isinstance(node, Mapping):
        known = {name: _value(name, child) for name, child in node.items()}
        target = str(known.get("_target_"))
        if target == SHAPLEY and "coalitions" not in known and known.get("method") == "auto":
            known["method"] = "exact_or_gtg"  # what auto meant then
        if target == TARGET and "accuracy" in known:
            known["value"] = known.pop("accuracy")
        return {**ADDED.get(target, {}), **known}
    return [renewed(child) for child in node] if isinstance(node, list) else node


def _value(name: Any, child: Any) -> Any:
    return today(child) if name == "_target_" and isinstance(child, str) else renewed(child)
