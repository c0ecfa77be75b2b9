"""Games whose Shapley values are known exactly, as tables of utilities `[2^M]`; and their evaluation by coalition."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from fedexp.maths.shapley.game.utilities import Utilities, all_coalitions

Method = Literal["auto", "exact", "gtg", "surrogate"]
Stop = Literal["values", "ranking", "budget"]


def additive(players: int, rng: np.random.Generator) -> np.ndarray:
    """Everybody adds a worth of its own."""
    return all_coalitions(players) @ rng.normal(size=players)


def unrelated(players: int, rng: np.random.Generator) -> np.ndarray:
    """Every coalition has a utility of its own."""
    return rng.normal(size=2**players)


def threshold(players: int, rng: np.random.Generator) -> np.ndarray:
    """A weighted majority wins 1."""
    votes = rng.random(players) + 0.2
    return (all_coalitions(players) @ votes > votes.sum() / 2).astype(float)


def losing(players: int, rng: np.random.Generator) -> np.ndarray:
    """Minus the loss of averaged noisy models, with some noise: concave in the number of players."""
    members = all_coalitions(players)
    models = members @ rng.normal(0.5, 1, size=(players, 6)) / np.maximum(members.sum(axis=1, keepdims=True), 1)
    return -np.log1p(((models - 1) ** 2).sum(axis=1)) + 0.01 * rng.normal(size=2**players)


FAMILIES = {"additive": additive, "unrelated": unrelated, "threshold": threshold, "losing": losing}


def evaluating(utility: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The evaluation of coalitions `[R, M]` by the table."""
    players = len(utility).bit_length() - 1
    return lambda members: utility[(members << np.arange(players)).sum(axis=1)]


def utilities(utility: np.ndarray) -> Utilities:
    return Utilities(len(utility).bit_length() - 1, evaluating(utility))
