"""What every promise needs to be told: there are no defaults for how private is private enough."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from fedexp.privacy.privacy import Privacy
from fedexp.spec import ConfigError, Positive, Range


@dataclass(frozen=True, kw_only=True)
class Settings(Privacy):
    """A clip, a delta, and a noise multiplier or the epsilon from which it is worked out for so many rounds."""

    guarantees = True
    hides: ClassVar[str] = "each update"  # what the clip bounds

    clip: Annotated[float, Positive] | None = None
    noise_multiplier: Annotated[float, Range(0)] | None = None
    epsilon: Annotated[float, Positive] | None = None
    delta: Annotated[float, Range(0, 1, low_open=True, high_open=True)] | None = None
    rounds: Annotated[int, Range(1)] = 1
    accountant: Literal["rdp", "pld"] = "pld"

    def check(self) -> None:
        if self.clip is None:
            raise ConfigError(
                f"privacy.clip must be given, the norm at which {self.hides} is clipped, such as privacy.clip=1"
            )
        if self.delta is None:
            raise ConfigError(
                "privacy.delta must be given, well below 1 / number of those protected, such as privacy.delta=1e-5"
            )
        if (self.noise_multiplier is None) == (self.epsilon is None):
            raise ConfigError(
                "privacy.noise_multiplier (noise / clip) or privacy.epsilon (from which it is worked out): one must be "
                f"given and the other null, got {'neither' if self.epsilon is None else 'both'}"
            )

    def terms(self) -> dict[str, float]:
        return {"delta": self.bound, "noise_multiplier": self.noise}

    @property
    def norm(self) -> float:
        """The clip, given."""
        assert self.clip is not None
        return self.clip

    @property
    def bound(self) -> float:
        """Delta, given."""
        assert self.delta is not None
        return self.delta

    @property
    def noise(self) -> float:
        """The noise multiplier, given or worked out."""
        assert self.noise_multiplier is not None
        return self.noise_multiplier
