"""The contract of stops: when a run ends before its last round."""

from fedexp.core.part import Part
from fedexp.core.values import Columns, Memory


class Stop(Part):
    """Decides when a run ends before its last round. The base never ends it."""

    needs_validation = False
    needs_test = False
    needs_clock = False
    needs_privacy = False

    def refuse(self, metric: str) -> None:
        """Raises ConfigError where it cannot judge by this main metric."""

    def judge(self, row: Columns, memory: Memory) -> tuple[str | None, Memory]:
        """A reason to stop after this round, or None, given the round's line of metrics.csv.

        Of the test data nothing stands there, unless `needs_test` says that the rule counts rounds by it; then it is
        asked only in rounds that are evaluated.
        """
        return None, memory

    @property
    def looks_at_scores(self) -> bool:
        """Whether it judges how good the models are, which nobody can know in advance."""
        return self.needs_validation or self.needs_test
