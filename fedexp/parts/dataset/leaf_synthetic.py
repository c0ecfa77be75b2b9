"""synthetic(alpha, beta): devices with a linear model and a cloud of examples of their own; made, not downloaded.

Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, "Federated optimization in heterogeneous networks", MLSys 2020,
arXiv:1812.06127, section 5.1, and the generator that the authors published. Device k has labels
y = argmax(x W_k + b_k), with entries of W_k and b_k from N(u_k, 1), u_k from N(0, alpha); x from N(v_k, S), S diagonal
with S_jj = j^-1.2, entries of v_k from N(B_k, 1), B_k from N(0, beta). It has 50 examples and floor(lognormal(4, 2))
more, of which a tenth is for testing. As in the generator, alpha and beta are standard deviations, where the paper's
N(0, alpha) reads as a variance; it makes no difference at 0 and 1. With `iid` all devices share one W, b from N(0, 1),
and v_k = 0.

The generator draws from one seed; here every device has a named stream of `draw`, so runs with different seeds train on
the same devices. Legend: S examples, d features, K classes.
"""

from functools import lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np

from fedexp.parts import Data, Dataset, Facts, Range, split_by_mask, stream

FEATURES, CLASSES = 60, 10
MIN_EXAMPLES, MAX_EXTRA = 50, 100_000  # examples of a device; one in ten thousand would have more
HELD_OUT = 0.1


def sizes(devices: int, draw: int) -> np.ndarray:
    """How many examples each device has, int64 `[devices]`."""
    extra = stream(draw, "leaf_synthetic", "sizes").lognormal(4, 2, devices)
    return np.minimum(extra, MAX_EXTRA).astype(np.int64) + MIN_EXAMPLES


def linear_labels(x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """The classes `[S]` that a linear model `weights [d, K]`, `bias [K]` gives to examples `x [S, d]`."""
    return (x @ weights + bias).argmax(axis=1)


def draw_examples(size: int, centre: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Examples `[S, d]` around `centre [d]`, feature j with variance j^-1.2, counted from 1."""
    return centre + rng.standard_normal((size, len(centre))) * np.arange(1, len(centre) + 1) ** -0.6


class LeafSynthetic(Dataset):
    """`draw` selects one of all such federations, independently of the run's seed."""

    alpha: Annotated[float, Range(0)] = 1.0
    beta: Annotated[float, Range(0)] = 1.0
    iid: bool = False
    devices: Annotated[int, Range(1, 10_000)] = 30
    draw: Annotated[int, Range(0)] = 0

    def facts(self, directory: Path) -> Facts:
        count = sizes(self.devices, self.draw)
        return Facts((FEATURES,), CLASSES, int((count - _test_counts(count)).sum()), self.devices)

    def load(self, directory: Path, seed: int) -> Data:
        count = sizes(self.devices, self.draw)
        device_data = [_device_data(self, device, int(size)) for device, size in enumerate(count)]
        x, y = (np.concatenate(part) for part in zip(*device_data, strict=True))
        device = np.repeat(np.arange(self.devices), count)
        position = np.arange(len(y)) - np.repeat(np.cumsum(count) - count, count)
        test = position >= np.repeat(count - _test_counts(count), count)
        return Data(*split_by_mask(test, x, y, device), tuple(map(str, range(CLASSES))))


def _test_counts(count: np.ndarray) -> np.ndarray:
    return count - ((1 - HELD_OUT) * count).astype(np.int64)


@lru_cache(maxsize=1)
def _shared_model(draw: int) -> tuple[np.ndarray, np.ndarray]:
    """The linear model that all devices share: weights and bias."""
    rng = stream(draw, "leaf_synthetic", "model")
    return rng.standard_normal((FEATURES, CLASSES)), rng.standard_normal(CLASSES)


def _device_data(settings: LeafSynthetic, device: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples float32 `[S, d]` and labels int64 `[S]` of one device."""
    rng = stream(settings.draw, "leaf_synthetic", "device", device)
    u, b = settings.alpha * rng.standard_normal(), settings.beta * rng.standard_normal()
    centre = b + rng.standard_normal(FEATURES)
    weights, bias = u + rng.standard_normal((FEATURES, CLASSES)), u + rng.standard_normal(CLASSES)
    if settings.iid:
        centre = np.zeros(FEATURES)
        weights, bias = _shared_model(settings.draw)
    x = draw_examples(size, centre, rng)
    return x.astype(np.float32), linear_labels(x, weights, bias)
