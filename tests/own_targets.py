"""A dataset and a model of users for every kind of targets: a class, labels, numbers or the next tokens."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from fedexp.parts import Data, Dataset, Facts, Model, Split

SUITS = {"class": "cross_entropy", "labels": "bce", "numbers": "mse", "tokens": "next_token"}
OWN = {
    "cross_entropy": {"label_smoothing": 0.0, "class_weights": None},
    "generalized_cross_entropy": {"q": 0.7},
    "bce": {},
    "mse": {},
    "mae": {},
    "huber": {"delta": 1.0},
    "next_token": {},
}
KINDS = {
    "cross_entropy": "CrossEntropy",
    "generalized_cross_entropy": "GeneralizedCrossEntropy",
    "bce": "BCE",
    "mse": "MSE",
    "mae": "MAE",
    "huber": "Huber",
    "next_token": "NextToken",
}


class Told(Dataset):
    """Noisy linear targets of four numbers; of text, tokens that count upwards, the last of each ignored."""

    targets: Literal["class", "labels", "numbers", "tokens"]
    train_size: int = 60

    def facts(self, directory: Path) -> Facts:
        if self.targets == "tokens":
            return Facts((5,), 6, self.train_size, targets="tokens", vocabulary=6)
        return Facts((4,), 3, self.train_size, targets=self.targets)

    def load(self, directory: Path, seed: int) -> Data:
        rng = np.random.default_rng(seed)
        return Data(
            self.split(rng, self.train_size), self.split(rng, 30), tuple("abcdef"[: self.facts(directory).classes])
        )

    def split(self, rng: np.random.Generator, count: int) -> Split:
        if self.targets == "tokens":
            x = (rng.integers(6, size=(count, 1)) + np.arange(6)) % 6
            y = x[:, 1:].copy()
            y[:, -1] = -100
            return Split(torch.from_numpy(x[:, :-1]), torch.from_numpy(y))
        x = rng.normal(size=(count, 4)).astype(np.float32)
        y = x @ np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3) + 0.1 * rng.normal(size=(count, 3))
        if self.targets == "class":
            return Split(torch.from_numpy(x), torch.from_numpy(y.argmax(axis=1)))
        found = (y > 0) if self.targets == "labels" else y
        return Split(torch.from_numpy(x), torch.from_numpy(found.astype(np.float32)))


class Reader(Model):
    """What it looks up of a token says which is the next one."""

    def network(self, facts: Facts) -> nn.Module:
        if not facts.vocabulary:
            return nn.Sequential(nn.Linear(facts.shape[0], 5), nn.Tanh(), nn.Linear(5, facts.classes))
        return nn.Sequential(nn.Embedding(facts.vocabulary, 5), nn.Tanh(), nn.Linear(5, facts.classes))


def told(config: dict[str, Any], targets: str, loss: str = "", **more: Any) -> dict[str, Any]:
    """The config with such a dataset, a model of it, and the loss that suits it or is named."""
    name = loss or SUITS[targets]
    kind = f"fedexp.parts.loss.{name}.{KINDS[name]}"
    return {
        **config,
        "dataset": {"_target_": "own_targets.Told", "targets": targets},
        "model": {"_target_": "own_targets.Reader"},
        "loss": {"_target_": kind, **OWN[name], **more},
    }
