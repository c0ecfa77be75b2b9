"""PyTorch's own generators, lent to code that draws from them without asking: begun at a seed, put back afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def begun_at(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Whatever is drawn inside follows from the seed alone, and nothing outside notices."""
    places = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(places):
        torch.default_generator.manual_seed(seed)
        for place in places:
            torch.cuda.default_generators[place.index or 0].manual_seed(seed)
        yield
