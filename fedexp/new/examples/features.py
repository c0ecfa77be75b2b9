"""What of an example the models see: write here what the server learns of its public examples, and how all encode then.

As it stands, the principal components of the flattened examples, each with variance 1.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Annotated

import numpy as np
import torch

from fedexp.parts import Data, Encoding, Facts, Features, Range, Split, Streams


@dataclass(frozen=True, kw_only=True)
class Projection(Encoding):
    """Onto `axes [d, K]`, from where the public examples lie: `mean [d]`."""

    mean: torch.Tensor
    axes: torch.Tensor

    def split(self, split: Split, rng: np.random.Generator) -> Split:
        return replace(split, x=(split.x.flatten(1).float() - self.mean) @ self.axes)

    def data(self, data: Data, rng: Streams) -> Data:
        return super().data(replace(data, scale=1.0, mean=(0.0,), std=(1.0,)), rng)


class OwnFeatures(Features):
    """So many `components`, those with the largest variance."""

    needs_public = True

    components: Annotated[int, Range(1)] = 16

    def facts(self, facts: Facts) -> Facts:
        return replace(facts, shape=(min(self.components, prod(facts.shape)),))

    def learn(self, public: torch.Tensor, rng: Streams, device: torch.device) -> Encoding:
        x = public.flatten(1).float()
        variance, axes = torch.linalg.eigh(torch.cov(x.T))
        largest = slice(-self.components, None)
        return Projection(mean=x.mean(dim=0), axes=axes[:, largest] / variance[largest].clamp(min=1e-6).sqrt())
