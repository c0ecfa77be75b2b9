"""Metrics summed over chunks are scikit-learn's on the whole."""

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from composing import experiment
from own_targets import told
from sklearn import metrics as sk
from worlds import Tiny, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.maths.curve_metrics import HIGHER_IS_BETTER, MULTI_VALUED
from fedexp.scoring.metrics import METRICS, MetricSet
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.setup import compatibility

recall_score: Any = sk.recall_score  # its types know no average=None

NAMES = tuple("abcdefg")
CLASSWISE = ("accuracy", "top5", "macro_f1", "balanced_accuracy", "class_recall")


def gauged(names: tuple[str, ...], outputs: torch.Tensor, targets: torch.Tensor) -> dict[str, float]:
    """The metrics of outputs that are measured in chunks of 17."""
    gauge = MetricSet(names, NAMES[: outputs.shape[-1]])
    chunks = zip(outputs.split(17), targets.split(17), strict=True)
    total = torch.stack([gauge.sums(some, right) for some, right in chunks]).sum(dim=0)
    assert total.shape == (gauge.width,)
    assert total.dtype == torch.float64
    return gauge.values(total.numpy())


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    """scikit-learn warns of classes that are not there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def test_of_classes(rng: np.random.Generator):
    """Of seven classes the last is never there, and the one before is never named."""
    outputs = torch.from_numpy(rng.normal(size=(203, 7)).astype(np.float32))
    outputs[:, 5] -= 100
    targets = torch.from_numpy(rng.integers(6, size=203))
    found, said, right = gauged(CLASSWISE, outputs, targets), outputs.argmax(dim=1).numpy(), targets.numpy()
    assert found["accuracy"] == pytest.approx(sk.accuracy_score(right, said))
    assert found["macro_f1"] == pytest.approx(sk.f1_score(right, said, average="macro"))
    assert found["balanced_accuracy"] == pytest.approx(sk.balanced_accuracy_score(right, said))
    top = sk.top_k_accuracy_score(right, outputs.numpy(), k=5, labels=np.arange(7))
    assert found["top5"] == pytest.approx(top)
    recalls = [found[f"recall.{name}"] for name in NAMES]
    assert recalls[:6] == pytest.approx(recall_score(right, said, average=None, labels=np.arange(6)).tolist())
    assert math.isnan(recalls[6])


def test_of_fewer_than_five_classes_all_are_among_the_first_five():
    assert gauged(("top5",), torch.randn(9, 3), torch.arange(9) % 3) == {"top5": 1}


def test_of_labels(rng: np.random.Generator):
    outputs = torch.from_numpy(rng.normal(size=(101, 4)))
    targets = torch.from_numpy((rng.random((101, 4)) < 0.3).astype(np.float32))
    found, said, right = gauged(("macro_f1", "accuracy", "class_recall"), outputs, targets), outputs > 0, targets > 0
    assert found["macro_f1"] == pytest.approx(sk.f1_score(right, said, average="macro"))
    assert found["accuracy"] == pytest.approx(1 - sk.hamming_loss(right, said))
    assert [found[f"recall.{name}"] for name in "abcd"] == pytest.approx(
        recall_score(right, said, average=None).tolist()
    )


@pytest.mark.parametrize("shift", [0.0, 1000.0])
def test_of_numbers(rng: np.random.Generator, shift: float):
    targets = torch.from_numpy(shift + rng.normal(size=(101, 3)) * [1, 5, 20])
    outputs = targets + torch.from_numpy(rng.normal(size=(101, 3)))
    found, said, right = gauged(("rmse", "mae", "r2"), outputs, targets), outputs.numpy(), targets.numpy()
    assert found["mae"] == pytest.approx(sk.mean_absolute_error(right, said))
    assert found["rmse"] == pytest.approx(sk.root_mean_squared_error(right, said))
    assert found["r2"] == pytest.approx(sk.r2_score(right, said), rel=1e-6)


def test_of_a_number_that_never_varies():
    targets = torch.full((9, 1), 2.0)
    for outputs in (targets, targets + 1):
        assert gauged(("r2",), outputs, targets)["r2"] == sk.r2_score(targets, outputs)


def test_of_tokens_by_hand():
    """Odds of 1 and 3: probabilities 1/4, 3/4 and 3/4, one token ignored."""
    outputs = torch.tensor([0.0, math.log(3)]).expand(2, 2, 2)
    found = gauged(("perplexity", "accuracy"), outputs, torch.tensor([[0, 1], [1, -100]]))
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["perplexity"] == pytest.approx((4 * 4 / 3 * 4 / 3) ** (1 / 3))


def test_every_metric_of_one_number_has_a_direction():
    assert set(METRICS) == {*HIGHER_IS_BETTER, *MULTI_VALUED}


def test_recalls_are_empty_in_rounds_that_are_not_evaluated(tiny: Tiny):
    words = ("evaluation.metrics=[accuracy,class_recall]", "evaluation.validation=true", "evaluation.every=2")
    world = world_of(tiny(*words, "rounds=3"))
    rows = [row for _, row, _ in run_rounds(world.exp, world, world.initial_state())]
    for name in ("test_recall.0", "validation_recall.0"):
        assert [row[name] is None for row in rows] == [True, False, False]


def test_a_run_has_their_columns_on_any_number_of_chunks(tiny: Tiny):
    words = ("evaluation.metrics=[macro_f1,accuracy,class_recall]", "evaluation.validation=true", "rounds=1")
    rows = []
    for chunk in (7, 1000):
        world = world_of(tiny(*words, f"engine.evaluation_chunk={chunk}"))
        ((_, row, _),) = run_rounds(world.exp, world, world.initial_state())
        rows.append(row)
    names = [f"{kind}_{name}" for kind in ("test", "validation") for name in ("macro_f1", "accuracy", "recall.0")]
    assert [rows[0][name] for name in names] == [rows[1][name] for name in names]
    logits = world.scorer.logits(world.first, world.test.inputs(slice(None)))
    assert world.score(world.first, world.test).metrics["macro_f1"] == pytest.approx(
        sk.f1_score(world.test.y, logits.argmax(dim=1), average="macro")
    )


@pytest.mark.parametrize(
    ("targets", "metric", "use"),
    [
        ("numbers", "accuracy", "mae, rmse, r2"),
        (
            "class",
            "rmse",
            "accuracy, top5, macro_f1, balanced_accuracy, class_recall, sensitivity, specificity, precision, auroc, "
            "auprc, brier, ece, confusion_matrix",
        ),
        ("tokens", "macro_f1", "accuracy, top5, perplexity"),
    ],
)
def test_a_metric_of_other_targets_is_refused(tiny: Tiny, targets: str, metric: str, use: str):
    exp = spec.build(told(tiny(f"evaluation.metrics=[{metric}]"), targets))
    words = targets.replace("class", "classes")
    said = rf"^evaluation\.metrics must suit targets that are {words}, got {metric}; use some of {use}$"
    with pytest.raises(ConfigError, match=said):
        compatibility.refuse(exp)


@pytest.mark.parametrize("metrics", ["[]", "[class_recall]", "[confusion_matrix,accuracy]", "[accuracy,accuracy]"])
def test_a_main_metric_is_needed(metrics: str):
    with pytest.raises(ConfigError, match=r"^evaluation\.metrics must be different ones, the first of them \(the main"):
        experiment(f"evaluation.metrics={metrics}")


def test_thresholds_are_values_of_the_main_metric(tiny: Tiny):
    compatibility.refuse(spec.build(told(tiny("evaluation.roa=[5,2.5]"), "numbers")))
    with pytest.raises(ConfigError, match=r"^evaluation\.roa must be values of accuracy, from 0 to 1, got 5$"):
        compatibility.refuse(experiment("evaluation.roa=[0.5,5]"))


def test_r2_of_one_example_is_no_number():
    outputs, targets = torch.tensor([[1.0]]), torch.tensor([[2.0]])
    gauge = MetricSet(("r2", "mae"), ("price",))
    found = gauge.values(gauge.sums(outputs, targets).numpy())
    assert np.isnan(found["r2"])
    assert found["mae"] == 1.0


@pytest.mark.parametrize("constant", [-2.3, 0.1, 7.7])
def test_r2_of_a_target_that_never_varies_is_0_or_1(constant: float):
    gauge, targets = MetricSet(("r2",), ("price",)), torch.full((10_007, 1), constant)
    assert gauge.values(gauge.sums(targets + 0.5, targets).numpy())["r2"] == 0
    assert gauge.values(gauge.sums(targets.clone(), targets).numpy())["r2"] == 1


def test_the_names_of_values_are_those_of_values():
    metric_set = MetricSet(("accuracy", "class_recall", "confusion_matrix", "macro_f1"), ("a", "b"))
    sums = metric_set.sums(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1])).numpy()
    assert metric_set.value_names == list(metric_set.values(sums))
