"""The network of the Keras notebook: its size, and when it drops out."""

import math

import pytest
import torch
from networks import MNIST, parameters
from torch.nn import functional as F

from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.keras_cnn import KerasCNN


def test_as_many_parameters_as_the_notebook_shows():
    """3 x 3 entries and a bias for each of 32 and of 64 channels, 64 x 7 x 7 values into 10 classes."""
    assert parameters(KerasCNN(), MNIST, 10) == (9 * 32 + 32) + (32 * 9 * 64 + 64) + (3136 * 10 + 10) == 50_186


def test_dropout_thins_training_alone():
    x = torch.ones(2, *MNIST)
    plain, thinned = (KerasCNN(dropout=share).network(Facts(MNIST, 10, 1)) for share in (0.0, 0.9))
    thinned.load_state_dict(plain.state_dict())
    assert torch.equal(plain.eval()(x), thinned.eval()(x))
    assert not torch.allclose(plain.train()(x), thinned.train()(x))


def test_probabilities_taken_for_logits_leave_a_loss():
    """All on the right class: logits 1 and nine times 0, so the loss is log(e + 9) - 1 = log(1 + 9 / e)."""
    facts = Facts(MNIST, 10, 1)
    logits, flawed = KerasCNN().network(facts).eval(), KerasCNN(outputs="probabilities").network(facts).eval()
    flawed.load_state_dict(logits.state_dict())
    x = torch.ones(2, *MNIST)
    assert torch.equal(flawed(x), logits(x).softmax(dim=1))
    certain = torch.nn.functional.one_hot(torch.tensor([3]), 10).float()
    assert F.cross_entropy(certain, torch.tensor([3])).item() == pytest.approx(math.log(1 + 9 / math.e), rel=1e-6)


def test_the_slip_of_the_notebook_is_in_its_tests_alone():
    facts, x = Facts(MNIST, 10, 1), torch.ones(2, *MNIST)
    logits, flawed = (
        KerasCNN(dropout=0, outputs=outputs).network(facts) for outputs in ("logits", "tested_as_probabilities")
    )
    flawed.load_state_dict(logits.state_dict())
    assert torch.equal(flawed.train()(x), logits.train()(x))
    assert torch.equal(flawed.eval()(x), logits.eval()(x).softmax(dim=1))
