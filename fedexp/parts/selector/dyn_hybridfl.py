"""Dyn-HybridFL (the selection thesis): HybridFL whose deadline follows the candidates' resources.

phi = mean t_UD + mean t_UL over the candidates; T_round(t) = T_round(t - 1) phi(t) / phi(t - 1), the first round
unchanged. The product telescopes: T_round(t) = T_round(0) phi(t) / phi(0), so all deadlines depend on the first round's
draw, and slower candidates get a longer one. Extension: `shortest_s` and `longest_s` bound those of later rounds.
"""

from typing import Annotated

from fedexp.parts import ConfigError, Memory, Positive, Resources
from fedexp.parts.selector.hybridfl import HybridFL


def slowness(resources: Resources) -> float:
    """phi: mean seconds of training plus mean seconds of uploading."""
    return float(resources.update_s.mean() + resources.upload_s.mean())


class DynHybridFL(HybridFL):
    """`round_s` is the first round's deadline; remembers `phi`, the first round's slowness."""

    shortest_s: Annotated[float, Positive] | None = None
    longest_s: Annotated[float, Positive] | None = None

    def check(self) -> None:
        if self.shortest_s is not None and self.longest_s is not None and self.shortest_s > self.longest_s:
            raise ConfigError(
                f"DynHybridFL.shortest_s must be at most longest_s={self.longest_s:g}, got {self.shortest_s:g}"
            )

    def deadline(self, resources: Resources, memory: Memory) -> tuple[float, Memory]:
        now = slowness(resources)
        if "phi" not in memory:
            return self.round_s, {**memory, "phi": now}
        round_s = self.round_s * now / memory["phi"]
        if self.shortest_s is not None:
            round_s = max(round_s, self.shortest_s)
        if self.longest_s is not None:
            round_s = min(round_s, self.longest_s)
        return round_s, memory
