"""Which networks are the same but for their entries, and which rules step at a column of rates."""

from dataclasses import dataclass, replace

import pytest
import torch
from composing import options, tiny
from torch import nn

from fedexp.core import part as spec
from fedexp.maths.optimizer_steps import descend
from fedexp.parts.local.contract import LocalRule
from fedexp.training.precision import in_bf16
from fedexp.training.rate_columns import takes_columns
from fedexp.training.twins import twins


def network(width: int = 4, slope: float = 0.1, dropout: float = 0.5) -> nn.Sequential:
    layers = nn.Linear(3, width), nn.LeakyReLU(slope), nn.BatchNorm1d(width), nn.Dropout(dropout), nn.Linear(width, 2)
    return nn.Sequential(*layers)


class Projected(nn.Module):
    """A network with a fixed tensor that is neither parameter nor buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.last, self.fixed = nn.Linear(3, 2), torch.randn(3, 3)


def test_only_the_entries_may_differ():
    assert twins(network(), network())
    assert twins(in_bf16(network()), in_bf16(network()))
    for other in (network(width=5), network(slope=0.2), network(dropout=0.1), network()[:4], in_bf16(network())):
        assert not twins(network(), other)


def test_what_lies_in_no_row_counts():
    one, other = Projected(), Projected()
    assert not twins(one, other)
    other.fixed = one.fixed.clone()
    assert twins(one, other)
    counted = network()
    counted.get_buffer("2.num_batches_tracked").add_(1)
    assert not twins(network(), counted)


def test_hooks_count():
    hooked = network()
    hooked.register_forward_hook(lambda *_: None)
    assert not twins(network(), hooked)


@pytest.mark.parametrize("option", options("local"))
def test_our_rules_step_at_columns(option: str):
    rule = spec.build(tiny(f"local={option}")["local"], "local")
    assert takes_columns(rule, 7)
    assert takes_columns(replace(rule, lr=1e-3, clip_norm=0.5), 7)


@dataclass(frozen=True, kw_only=True)
class OfNumbers(LocalRule):
    """Makes a number of its rate."""

    def update(self, w, grad, slots, step, active):
        descend(w, grad, float(self.lr), active)


@dataclass(frozen=True, kw_only=True)
class OfTheFirst(LocalRule):
    """Takes one rate for all rows."""

    def update(self, w, grad, slots, step, active):
        lr = self.lr.flatten()[0] if isinstance(self.lr, torch.Tensor) else self.lr
        descend(w, grad, lr, active)


def test_rules_that_do_not_are_found_out():
    assert not takes_columns(OfNumbers(), 7)
    assert not takes_columns(OfTheFirst(), 7)
