"""Settings that every privacy part needs. Clip and delta have no default: the user decides how private is enough."""

from abc import abstractmethod
from typing import Annotated, ClassVar

import numpy as np

from fedexp.parts import Columns, ConfigError, Positive, PositiveOrInfinite, Privacy, Range
from fedexp.parts.privacy.accounting import Accountant, epsilons, largest_epsilon

NO_NOISE = "Nothing is promised: no noise is added (privacy.noise_multiplier=0), what is sent is only clipped"
NOT_COVERED = (
    "It holds against those who cannot guess the seed, from which the noise is drawn, and for this run alone: what "
    "several publish of the same data adds up. Losses, test figures, counts and digests in this folder are the "
    "experimenter's and not covered"
)


class PromisedPrivacy(Privacy):
    """A clip, a delta, and a noise multiplier, or the epsilon for `rounds` rounds from which it is computed."""

    guarantees = True
    clipped_unit: ClassVar[str] = "each update"  # what the clip bounds

    clip: Annotated[float, PositiveOrInfinite] | None = None
    noise_multiplier: Annotated[float, Range(0)] | None = None
    epsilon: Annotated[float, Positive] | None = None
    delta: Annotated[float, Range(0, 1, low_open=True, high_open=True)] | None = None
    rounds: Annotated[int, Range(1)] = 1
    accountant: Accountant = "pld"

    @abstractmethod
    def guarantee(self) -> str:
        """What the noise gives, to whom, and on which assumption, in a sentence without its full stop."""

    def promise(self) -> str:
        return f"{self.guarantee()}. {NOT_COVERED}" if self.noise else NO_NOISE

    def check(self) -> None:
        missing = {}
        if self.clip is None:
            missing["privacy.clip=1"] = f"the norm at which {self.clipped_unit} is clipped"
        if self.delta is None:
            missing["privacy.delta=1e-5"] = "well below 1 / number of those protected"
        if self.noise_multiplier is None and self.epsilon is None:
            missing["privacy.epsilon=8"] = "or privacy.noise_multiplier, which is computed from it"
        if missing:
            names = " and ".join(f"{example.partition('=')[0]} ({meaning})" for example, meaning in missing.items())
            raise ConfigError(f"{names} must be given, such as {' '.join(missing)}")
        if self.noise_multiplier is not None and self.epsilon is not None:
            raise ConfigError(
                f"privacy.noise_multiplier (noise / clip) is computed from privacy.epsilon, got both, "
                f"{self.noise_multiplier:g} and {self.epsilon:g}; set one of them to null"
            )

    def terms(self) -> dict[str, float]:
        return {"delta": self.required_delta, "noise_multiplier": self.noise}

    def ledger_columns(self, rate: np.ndarray, noise: float, now: np.ndarray, after_next: np.ndarray) -> Columns:
        """A round's ledger columns: the largest epsilon after `now [n]` and `after_next [n]` releases at `rate [n]`."""
        rdp, pld = (largest_epsilon(rate, noise, now, self.required_delta, accountant) for accountant in ("rdp", "pld"))
        epsilon_next = largest_epsilon(rate, noise, after_next, self.required_delta, self.accountant)
        epsilon: Columns = {"epsilon_rdp": rdp, "epsilon_pld": pld, "epsilon_next": epsilon_next}
        return epsilon | {"noise_multiplier": self.noise}

    def epsilon_columns(self, rate: np.ndarray, noise: float, count: np.ndarray) -> dict[str, np.ndarray]:
        """The epsilons `[n]` after `count [n]` releases at `rate [n]`, by column of clients.csv."""
        rdp, pld = epsilons(rate, noise, count, self.required_delta)
        return {"epsilon_rdp": rdp, "epsilon_pld": pld}

    @property
    def required_clip(self) -> float:
        """The clip, which must be given."""
        assert self.clip is not None
        return self.clip

    @property
    def required_delta(self) -> float:
        """Delta, which must be given."""
        assert self.delta is not None
        return self.delta

    @property
    def noise(self) -> float:
        """The noise multiplier, given or computed."""
        assert self.noise_multiplier is not None
        return self.noise_multiplier
