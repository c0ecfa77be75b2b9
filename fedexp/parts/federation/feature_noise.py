"""Clients that see their examples through noise of different strength.

Source: the noise-based feature imbalance of Li, Diao, Chen & He, "Federated Learning on Non-IID Data Silos: An
Experimental Study" (ICDE 2022, arXiv 2102.02079, section 4.2): the data is divided at random in equal parts, and client
i of N (from 1) adds Gaussian noise of mean 0 and variance sigma i / N to the features. Features are in the units of the
dataset before it is normalised: [0, 1] for images, but those stored with `dataset.normalise=raw`.

The authors' code takes sigma (i - 1) / (N - 1) as the standard deviation instead (`noise=deviation`). Their tables were
made with it.

Deviations: the noise of an example is drawn once and stays; the code draws it anew in every epoch. Noisy examples are
stored as float32, so images take four times the memory. What clients hold out or set apart is as noisy as what they
train on. The server's data are clean: the test data, its validation data and the public data.
"""

from math import sqrt
from typing import Annotated, Literal

import numpy as np
import torch

from fedexp.parts import ConfigError, Facts, Range
from fedexp.parts.federation.iid import IID


def noise_deviation(client: int, clients: int, sigma: float, noise: str) -> float:
    """The standard deviation of the noise of a client, numbered from 0."""
    if noise == "deviation":
        return sigma * client / max(1, clients - 1)
    return sqrt(sigma * (client + 1) / clients)


class FeatureNoise(IID):
    """Client N sees the most noise."""

    shifts_features = True

    sigma: Annotated[float, Range(0, 1e9)] = 0.1
    noise: Literal["variance", "deviation"] = "variance"

    def refuse(self, facts: Facts) -> None:
        if facts.vocabulary:
            raise ConfigError(
                "federation=feature_noise adds numbers to features, but the examples are tokens; use federation=iid"
            )

    def shift_features(
        self, x: torch.Tensor, client: int, clients: int, scale: float, rng: np.random.Generator
    ) -> torch.Tensor:
        noise = torch.from_numpy(rng.standard_normal(x.shape, dtype=np.float32))
        return x.float() + noise * (scale * noise_deviation(client, clients, self.sigma, self.noise))
