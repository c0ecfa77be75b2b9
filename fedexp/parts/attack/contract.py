"""The contract of attacks: what malicious clients do to their data, once, and to what they send, every round."""

import numpy as np

from fedexp.core.part import Part
from fedexp.core.values import Memory, Uploads
from fedexp.parts.context import Context
from fedexp.parts.dataset.contract import Data, Facts, Split


class Attack(Part):
    """What the malicious clients do to their data and to what they send. The base does nothing."""

    needs_classes = False  # whether it can only work where targets are classes
    reads_honest_rows = False  # whether what malicious clients send depends on what honest ones do

    def refuse(self, facts: Facts) -> None:
        """Raises ConfigError, with the reason, if examples of this kind cannot be attacked in this way."""

    def why_harmless(self, participants: int, malicious: int) -> str:
        """Why the attack does no harm with so many malicious ones of a round's participants; empty if it does."""
        return ""

    def poison(self, train: Split, indices: np.ndarray, classes: int, rng: np.random.Generator) -> Split:
        """The training data, once, with the malicious clients' examples (`indices [n]`) changed in a copy."""
        return train

    def probes(self, data: Data) -> dict[str, Split]:
        """Examples, made of the test data, on which the accuracy is a column of its own, by the name of the column."""
        return {}

    def tamper(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        """The uploads as the server receives them, malicious clients' ones changed; and the attack's memory.

        `delta [C, W]` is all that each client sends: a rule that adds rows to the delta has them attacked alike.
        """
        return uploads, memory
