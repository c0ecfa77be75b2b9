"""FedAsync's slip in Plato: the share of a client's model is multiplied by the factor of every update so far.

The formula (Xie et al. 2019, arXiv 1903.03934) has a = alpha s(tau) in every step. In Plato's example the factor is
multiplied into alpha itself (examples/async/fedasync/fedasync_server.py, `self.mixing_hyperparam *=`, commit 60d6779),
so that a = alpha s(tau_1) s(tau_2) ... s(tau_t), which dies out. For the table plato_fedasync alone, to show what a
published number is of; whoever wants FedAsync takes algorithm=fedasync.
"""

from fedexp.parts import Arrivals, ConfigError, Context, Memory, Plan, Weights
from fedexp.parts.pacing.buffered import Buffered


class CompoundingMixing(Buffered):
    """A step takes one upload; remembers `shrinkage`, the product of the factors of all steps so far."""

    def check(self) -> None:
        super().check()
        if self.buffer != 1 or self.mixing is None:
            raise ConfigError(
                f"CompoundingMixing needs buffer=1 and a mixing, got buffer={self.buffer} and mixing={self.mixing}"
            )

    def due(self, plan: Plan, model: Weights, memory: Memory, ctx: Context) -> tuple[Arrivals, Memory]:
        arrivals, remembered = super().due(plan, model, memory, ctx)
        factor = memory.get("shrinkage", 1.0) * remembered["arrived"]["factor"]  # of one upload, or of none
        remembered["arrived"]["factor"] = factor
        remembered["shrinkage"] = float(factor[-1]) if len(factor) else memory.get("shrinkage", 1.0)
        return arrivals, remembered
