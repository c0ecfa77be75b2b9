"""Utilities at two fidelities: on all validation examples, and on a cheaper part of them.

The utility on all examples is that on the part plus a difference, U = U_part + (U - U_part). Shapley values are linear
in the game, so the two are estimated separately. Where U is rough, U_part is rough, too; the difference is a mean over
examples of the same models and close to additive, so that few coalitions determine it. No example is evaluated twice:
first those of the part, then the others if the utility on all is asked for. Multi-fidelity regression that models the
difference as a process of its own is Kennedy & O'Hagan's (2000); for Shapley values of averaged models it is new, as
far as we know.

Largest error in % of the spread (median / 95 % / max), M = 10, 14 rounds of MNIST and 5 of CIFAR-10, 3 seeds; cost in
evaluations of a model on all examples:

    coalitions on the part, on all   share   cost   MNIST              CIFAR-10
    80, 80                               1     80   0.9 / 2.9 / 4.7    1.1 / 2.1 / 2.5
    80, 30                             0.4     50   1.0 / 2.9 / 4.8    1.2 / 2.1 / 2.3
    80, 22                             0.2     32   1.4 / 4.9 / 6.6    1.2 / 2.0 / 2.1
    120, 120                             1    120   0.6 / 1.7 / 2.6    0.7 / 1.4 / 1.7
    100, 30                            0.4     58   1.0 / 2.3 / 3.2    0.9 / 1.9 / 3.2

Results of the default, a share of 0.25 and as many coalitions as it needs: `scripts/studies/shapley`.

Legend: M players, R coalitions.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedexp.maths.shapley.game.utilities import Utilities

FEWEST = 1000  # examples of a part
ON_ALL = 3  # times M coalitions are evaluated on all examples


@dataclass(frozen=True)
class Fidelities:
    """Utilities on all examples, and on a part of them where there is one."""

    full: Utilities
    part: Utilities | None = None

    @property
    def evaluated_count(self) -> int:
        """How many coalitions were asked for, on all examples or on the part."""
        return max(self.full.evaluated_count, self.part.evaluated_count if self.part else 0)

    def games(self, coalitions: np.ndarray) -> list[tuple[Utilities, np.ndarray]]:
        """Games that add up to the utility on all examples, each with the `coalitions [R, M]` to evaluate.

        The first of `coalitions` are evaluated on all examples: they should be those that determine an additive game.
        """
        full, part = self.full, self.part
        if part is None:
            return [(full, coalitions)]
        difference = Utilities(full.players, lambda members: full(members) - part(members))
        return [(part, coalitions), (difference, coalitions[: ON_ALL * full.players])]


def make_fidelities(players: int, evaluate: Callable[..., np.ndarray], examples: int, share: float) -> Fidelities:
    """The utilities on all examples, and on a part if `share` of the examples (at least `FEWEST`) is not all.

    `evaluate(members [R, M], places)` gives the mean utilities `[R]` on the examples at the `range` places of a fixed
    order; without `examples` it is `evaluate(members)`, on all.
    """
    first = max(FEWEST, round(share * examples))
    if not examples:
        return Fidelities(Utilities(players, evaluate))
    if first >= examples:
        return Fidelities(Utilities(players, lambda members: evaluate(members, range(examples))))
    part = Utilities(players, lambda members: evaluate(members, range(first)))
    remainder = Utilities(players, lambda members: evaluate(members, range(first, examples)))
    weight = first / examples
    return Fidelities(
        Utilities(players, lambda members: weight * part(members) + (1 - weight) * remainder(members)), part
    )
