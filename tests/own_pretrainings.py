"""Pretrainings of users: one that brings its model, one that forgets to ask for what it trains on."""

from collections.abc import Callable
from dataclasses import replace

import torch

from fedexp.parts import LocalRule, Pretraining, Weights


class Steps(LocalRule):
    def update(self, w: torch.Tensor, grad: torch.Tensor, slots: object, step: object, active: object) -> None:
        w.sub_(grad)


class Brought(Pretraining):
    def prepare(self, first: Weights, train: Callable[[LocalRule], Weights]) -> Weights:
        return replace(first, flat=torch.ones_like(first.flat))


class Forgetful(Pretraining):
    def prepare(self, first: Weights, train: Callable[[LocalRule], Weights]) -> Weights:
        return train(Steps())
