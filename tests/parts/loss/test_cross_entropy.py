import math

import pytest
import torch
from composing import experiment
from torch.nn import functional as F

from fedexp.core.errors import ConfigError
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.loss.cross_entropy import CrossEntropy

# Odds of 1, 2 and 5: probabilities 1/8, 2/8 and 5/8.
LOGITS = torch.tensor([[0.0, math.log(2), math.log(5)]], dtype=torch.float64)


def test_by_hand():
    for label, odds in enumerate((1, 2, 5)):
        cost = CrossEntropy().per_example(LOGITS, torch.tensor([label]))
        assert cost.tolist() == pytest.approx([math.log(8 / odds)])


def test_smoothing_by_hand():
    """Of the label, 0.7 stays and 0.3 is shared: -(0.8 log 1/8 + 0.1 log 2/8 + 0.1 log 5/8)."""
    cost = CrossEntropy(label_smoothing=0.3).per_example(LOGITS, torch.tensor([0]))
    assert cost.tolist() == pytest.approx([0.8 * math.log(8) + 0.1 * math.log(4) + 0.1 * math.log(8 / 5)])


def test_smoothing_is_that_of_pytorch_and_none_is_plain():
    logits, labels = torch.randn(7, 4, dtype=torch.float64), torch.arange(7) % 4
    smoothed = CrossEntropy(label_smoothing=0.1)
    assert smoothed.mean(logits, labels) == F.cross_entropy(logits, labels, label_smoothing=0.1)
    assert torch.equal(CrossEntropy().mean(logits, labels), F.cross_entropy(logits, labels))
    assert torch.equal(CrossEntropy().total(logits, labels), F.cross_entropy(logits, labels, reduction="sum"))


def test_weights_by_hand_divide_by_the_number_of_examples():
    """Costs log 8 and log 4 with weights 3 and 0.5: half their sum, where PyTorch divides by 3.5."""
    loss, labels = CrossEntropy(class_weights=(3, 0.5, 1)), torch.tensor([0, 1])
    logits = LOGITS.expand(2, -1)
    by_hand = (3 * math.log(8) + 0.5 * math.log(4)) / 2
    assert float(loss.mean(logits, labels)) == pytest.approx(by_hand)
    pytorch = F.cross_entropy(logits, labels, weight=torch.tensor([3, 0.5, 1]).double())
    assert float(pytorch) * 3.5 / 2 == pytest.approx(by_hand)
    ones = CrossEntropy(class_weights=(1, 1, 1))
    torch.testing.assert_close(ones.per_example(logits, labels), CrossEntropy().per_example(logits, labels))


def test_models_are_measured_without_smoothing_and_weights():
    shaped, labels = CrossEntropy(label_smoothing=0.5, class_weights=(9, 9, 9)), torch.tensor([2])
    assert torch.equal(shaped.evaluation_losses(LOGITS, labels), CrossEntropy().evaluation_losses(LOGITS, labels))
    assert torch.equal(shaped.total(LOGITS, labels), CrossEntropy().total(LOGITS, labels))


def test_as_many_weights_as_classes():
    with pytest.raises(ConfigError, match=r"^loss\.class_weights must have a weight for each of 3 classes, got 2$"):
        CrossEntropy(class_weights=(1, 2)).refuse(Facts((4,), 3, 9))
    with pytest.raises(ConfigError, match=r"^loss\.label_smoothing must be a number in \[0, 1\), got 1"):
        experiment("loss.label_smoothing=1")
