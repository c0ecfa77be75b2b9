"""Utilities of coalitions, each evaluated once and remembered by its set.

Legend: M players, R coalitions. A coalition is a row of a boolean matrix `[R, M]`.
"""

from collections.abc import Callable

import numpy as np

WORST = -1e3  # utility of a coalition whose model has no finite loss, unless a finite one is worse


class Utilities:
    """Remembers what `evaluate` says of coalitions `[R, M]`: one batch for all that are new."""

    def __init__(self, players: int, evaluate: Callable[[np.ndarray], np.ndarray]) -> None:
        self.players, self.evaluate = players, evaluate
        self.known: dict[bytes, float] = {}

    def __call__(self, members: np.ndarray) -> np.ndarray:
        """Utilities `[R]` of these coalitions."""
        keys = [row.tobytes() for row in np.packbits(members, axis=1)]
        new = {key: position for position, key in enumerate(keys) if key not in self.known}
        if new:
            found = self.evaluate(members[list(new.values())])
            worst = np.min(found, where=np.isfinite(found), initial=WORST)
            self.known |= dict(zip(new, np.where(np.isfinite(found), found, worst).tolist(), strict=True))
        return np.array([self.known[key] for key in keys])

    @property
    def evaluated(self) -> int:
        """How many coalitions were evaluated."""
        return len(self.known)

    @property
    def complete(self) -> bool:
        """Whether every coalition is known."""
        return self.players < 63 and self.evaluated == 2**self.players


def all_coalitions(players: int) -> np.ndarray:
    """Every coalition, bool `[2^M, M]`; row r holds the players whose bits are set in r."""
    return (np.arange(2**players)[:, None] >> np.arange(players) & 1).astype(bool)
