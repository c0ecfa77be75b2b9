"""Utilities of coalitions, each evaluated once and cached.

Legend: M players, R coalitions. A coalition is a row of a boolean matrix `[R, M]`.
"""

from collections.abc import Callable

import numpy as np

WORST = -1e3  # utility of a coalition whose model has no finite loss, unless a finite one is worse


class Utilities:
    """Caches the utilities that `evaluate` returns for coalitions `[R, M]`; new ones are evaluated in one batch."""

    def __init__(self, players: int, evaluate: Callable[[np.ndarray], np.ndarray]) -> None:
        self.players, self.evaluate = players, evaluate
        self.cache: dict[bytes, float] = {}
        self.requested: set[bytes] = set()

    def __call__(self, members: np.ndarray) -> np.ndarray:
        """Utilities `[R]` of the coalitions `[R, M]`."""
        keys = self._evaluate_new(members)
        self.requested.update(keys)
        return np.array([self.cache[key] for key in keys])

    def prefetch(self, members: np.ndarray) -> None:
        """Evaluates coalitions `[R, M]` in advance in one batch; they count only once they are requested."""
        self._evaluate_new(members)

    def count_missing(self, members: np.ndarray) -> int:
        """How many different ones of these coalitions `[R, M]` have not been asked for."""
        return len(set(_keys(members)) - self.requested)

    def knows(self, members: np.ndarray) -> np.ndarray:
        """Which of these coalitions `[R, M]` need no evaluation, bool `[R]`."""
        return np.array([key in self.cache for key in _keys(members)], dtype=bool)

    @property
    def evaluated_count(self) -> int:
        """How many coalitions were asked for."""
        return len(self.requested)

    @property
    def complete(self) -> bool:
        """Whether every coalition was asked for."""
        return self.players < 63 and self.evaluated_count == 2**self.players

    def _evaluate_new(self, members: np.ndarray) -> list[bytes]:
        keys = _keys(members)
        new = {key: position for position, key in enumerate(keys) if key not in self.cache}
        if new:
            values = self.evaluate(members[list(new.values())])
            worst = np.min(values, where=np.isfinite(values), initial=WORST)
            self.cache |= dict(zip(new, np.where(np.isfinite(values), values, worst).tolist(), strict=True))
        return keys


def all_coalitions(players: int) -> np.ndarray:
    """Every coalition, bool `[2^M, M]`; row r holds the players whose bits are set in r."""
    return (np.arange(2**players)[:, None] >> np.arange(players) & 1).astype(bool)


def _keys(members: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in np.packbits(members, axis=1)]
