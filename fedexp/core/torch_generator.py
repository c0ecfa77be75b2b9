"""Seeds PyTorch's global generators for code that draws from them, and restores them afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def begun_at(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Seeds PyTorch's global generators inside the block, and restores their states afterwards."""
    places = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(places):
        torch.default_generator.manual_seed(seed)
        for place in places:
            torch.cuda.default_generators[place.index or 0].manual_seed(seed)
        yield
