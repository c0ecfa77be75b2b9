import re

import pytest

from fedexp.compare import conditions, quantities
from fedexp.compare.pairing import pair_methods
from fedexp.core.errors import ConfigError


@pytest.fixture
def failing(method, read):
    """The lines that conditions give for two methods, whose accuracies end as told."""

    def lines(*texts, a=(0.8, 0.9), b=(0.85, 0.9)):
        met = pair_methods(read(method("ucb", a)), read(method("random", b)))
        return conditions.failures([conditions.parse(text) for text in texts], met)

    return lines


def test_a_condition_holds_or_not(failing):
    held = failing("test_accuracy < -0.02", "test_accuracy<=-0.03", "loss_auc >= 0", "accuracy_auc > 0")
    assert held == [
        "failed: test_accuracy < -0.02 holds, it is -0.025 for ucb (A) - random (B) over 2 pair(s)",
        "failed: loss_auc >= 0 holds, it is +0 for ucb (A) - random (B) over 2 pair(s)",
    ]


def test_a_bound_of_the_interval_that_does_not_exist_fails(failing):
    (said,) = failing("test_accuracy.low < -0.5")
    assert said.endswith("cannot be judged for ucb (A) - random (B): 2 pair(s) have no interval")


@pytest.mark.parametrize(
    ("text", "a", "b", "said"),
    [
        (
            "roa@0.85 > 3",
            (0.8, 0.9),
            (0.9, 0.9),
            "roa@0.85 > 3 holds, only A reached it in 0, only B in 1, neither in 0",
        ),
        ("roa@0.85 > 3", (0.9, 0.9), (0.8, 0.9), None),
        ("roa@0.85 > 3", (0.9, 0.8), (0.8, 0.9), "cannot be judged"),
        ("toa@0.99 > 3", (0.9, 0.8), (0.8, 0.9), "neither in 2"),
    ],
)
def test_never_reached_is_beyond_every_number(failing, text, a, b, said):
    lines = failing(text, a=a, b=b)
    assert len(lines) == (said is not None)
    assert said is None or said in lines[0]


@pytest.mark.parametrize("text", ["", "test_accuracy", "test_accuracy = 1", "test_accuracy < x", "< 3", "a b < 1"])
def test_what_is_no_condition(text):
    with pytest.raises(ConfigError, match=r'--fail-if must be "QUANTITY\[.low|.high\] SIGN NUMBER".*, got'):
        conditions.parse(text)


@pytest.mark.parametrize("text", ["accuracy < 1", "roa < 1", "roa@x < 1", "test_accuracy@0.5 < 1", "toa@x.low < 1"])
def test_what_is_no_quantity(text):
    with pytest.raises(ConfigError, match="a quantity must be one of test_accuracy, accuracy_auc"):
        conditions.parse(text)


def test_a_condition_reads_as_it_was_written():
    assert str(conditions.parse(" roa@.9.high>=1e2 ")) == "roa@0.9.high >= 100"


LONGER = {name: [0.1 * number for number in range(1, 6)] for name in ("test_loss", "test_accuracy", "host_s")}


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ({"test_loss": [1.0, 1.0, 1.0, float("inf")]}, "an infinite one"),
        ({"round": range(1, 6), **LONGER}, "5 and 4 rounds"),
    ],
)
def test_what_cannot_be_compared_fails(method, read, metrics, said):
    met = pair_methods(read(method("ucb", [0.8], metrics=metrics)), read(method("random", [0.8])))
    (line,) = conditions.failures([conditions.parse("loss_auc > 1e9")], met)
    assert "loss_auc > 1e+09 cannot be judged for ucb (A) - random (B)" in line
    assert said in line


def test_a_metric_of_the_runs_own_is_a_quantity(method, read):
    """More of it is better; the name of a function may end like that of an area."""
    columns = {"test_f2": [0.1, 0.2, 0.3, 0.4], "test_pr_auc": [0.1, 0.2, 0.3, 0.4], "test_recall.cat": [0.5] * 4}
    runs = read(method("ucb", (0.8, 0.9), metrics=columns), method("random", (0.7, 0.9), metrics=columns))
    met = pair_methods(runs[:2], runs[2:])
    texts = ("test_f2 >= 0", "f2_auc > 0", "test_pr_auc >= 0")
    held = conditions.failures([conditions.parse(text, runs) for text in texts], met)
    assert [line.partition(" for")[0] for line in held] == [
        "failed: test_f2 >= 0 holds, it is +0",
        "failed: test_pr_auc >= 0 holds, it is +0",
    ]
    assert quantities.parse("test_f2", "", runs).higher_is_better
    assert quantities.parse("test_pr_auc", "", runs).of(runs[0]) == 0.4
    assert quantities.parse("f2_auc", "", runs).of(runs[0]) == pytest.approx(0.75)
    assert quantities.parse("test_recall.cat", "", runs).of(runs[0]) == 0.5
    for text in ("test_f2 < 1", "test_recall.cat < 1"):
        with pytest.raises(ConfigError, match="a quantity must be one of"):
            conditions.parse(text)


@pytest.mark.parametrize(
    ("text", "guess"),
    [
        ("accuracy", "did you mean test_accuracy or accuracy_auc?"),
        ("acc", "did you mean test_accuracy or accuracy_auc?"),
        ("test_acuracy", "did you mean test_accuracy or test_auroc or test_auprc?"),
        ("zzz", "in all);"),
    ],
)
def test_a_metric_on_test_data_is_guessed_first(text, guess):
    with pytest.raises(ConfigError, match=re.escape(f"{guess} see --help")):
        quantities.parse(text, "")
