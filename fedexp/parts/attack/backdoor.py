"""Backdoor by a pixel trigger (Gu et al. 2017, BadNets; Bagdasaryan et al. 2020, arXiv 1807.00459).

A `fraction` of each malicious client's images gets a square of `size` pixels in the lower right corner, as bright as
the brightest pixel of all training images, and the label `target`; `scale` multiplies what the clients then send (model
replacement). The column `success_rate` is the share of the test images of other classes that the global model
classifies as `target` once they have that trigger (as bright as the brightest test image, where these are stored as
numbers of another kind).
"""

from dataclasses import replace
from typing import Annotated

import numpy as np
import torch

from fedexp.parts import AttackerKnowledge, ConfigError, Data, Facts, Fraction, Memory, ModelPoisoning, Range, Split


def add_trigger(x: torch.Tensor, size: int, bright: torch.Tensor) -> torch.Tensor:
    """Copies of the images `x [B, C, H, W]` with the trigger, whose pixels are `bright []`."""
    marked = x.clone()
    marked[..., -size:, -size:] = bright
    return marked


class Backdoor(ModelPoisoning):
    """Marks images with a bright square and labels them as class `target`."""

    needs_classes = True
    reads_honest_rows = False

    target: Annotated[int, Range(0)] = 0
    fraction: Annotated[float, Fraction] = 0.5
    size: Annotated[int, Range(1)] = 3
    scale: Annotated[float, Range(0)] = 1.0

    def refuse(self, facts: Facts) -> None:
        if len(facts.shape) != 3:
            raise ConfigError(
                f"attack=backdoor needs images (channels, height, width), but the examples have shape {facts.shape}; "
                "use attack=label_flip or an image dataset"
            )
        if self.size >= min(facts.shape[1:]):
            raise ConfigError(f"attack.size must be below the {min(facts.shape[1:])} pixels of an image's side")
        if self.target >= facts.classes:
            raise ConfigError(f"attack.target must be a class below {facts.classes}, got {self.target}")

    def why_harmless(self, participants: int, malicious: int) -> str:
        does_nothing = self.fraction == 0 and self.scale == 1
        return "attack.fraction=0 marks no image, and attack.scale=1 changes no update" if does_nothing else ""

    def poison(self, train: Split, indices: np.ndarray, classes: int, rng: np.random.Generator) -> Split:
        marked = torch.from_numpy(indices[rng.random(len(indices)) < self.fraction])
        x, y = train.x.clone(), train.y.clone()
        x[marked], y[marked] = add_trigger(x[marked], self.size, train.x.max()), self.target
        return replace(train, x=x, y=y)

    def probes(self, data: Data) -> dict[str, Split]:
        train, test = data.train, data.test
        other_classes = test.y != self.target
        bright = (train if train.x.dtype == test.x.dtype else test).x.max()
        x = add_trigger(test.x[other_classes], self.size, bright)
        y = torch.full_like(test.y[other_classes], self.target)
        return {"attack.success_rate": replace(test, x=x, y=y, subject=None)}

    def forge(self, knowledge: AttackerKnowledge) -> tuple[torch.Tensor, Memory]:
        return self.scale * knowledge.own_updates, knowledge.memory
