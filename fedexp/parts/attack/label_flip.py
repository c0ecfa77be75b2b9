"""Label flipping: malicious clients train on wrong labels.

Without `source` and `target` class y becomes K - 1 - y, as in Yin et al. 2018 (arXiv 1803.01498); with both, examples
of class `source` are called `target`, as in Tolpegin et al. 2020 (arXiv 2007.08432).
"""

from dataclasses import replace
from typing import Annotated

import numpy as np
import torch

from fedexp.parts import Attack, ConfigError, Context, Facts, Memory, Range, Split, Uploads


class LabelFlip(Attack):
    """All labels mirrored, or those of `source` turned into `target`."""

    needs_classes = True

    source: Annotated[int, Range(0)] | None = None
    target: Annotated[int, Range(0)] | None = None

    def check(self) -> None:
        if (self.source is None) != (self.target is None):
            raise ConfigError(
                "LabelFlip.source and target: both must be given, or none of them (then y becomes K - 1 - y), got "
                + ("target" if self.source is None else "source")
                + " alone"
            )

    def refuse(self, facts: Facts) -> None:
        for name, label in (("source", self.source), ("target", self.target)):
            if label is not None and label >= facts.classes:
                raise ConfigError(f"attack.{name} must be a class below {facts.classes}, got {label}")

    def why_harmless(self, participants: int, malicious: int) -> str:
        same = self.source is not None and self.source == self.target
        return f"attack.source and attack.target are the same class {self.source}" if same else ""

    def poison(self, train: Split, indices: np.ndarray, classes: int, rng: np.random.Generator) -> Split:
        labels, rows = train.y.clone(), torch.from_numpy(indices)
        old_labels = labels[rows]
        if self.source is None or self.target is None:
            labels[rows] = classes - 1 - old_labels
        else:
            labels[rows[old_labels == self.source]] = self.target
        return replace(train, y=labels)

    def tamper(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        """They train honestly on wrong labels; each round counts the malicious participants."""
        return uploads, {**memory, "columns": {"malicious": int(ctx.malicious(uploads.owner).sum())}}
