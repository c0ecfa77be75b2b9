"""Seeds PyTorch's global generators for code that draws from them, and restores them afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seed_torch(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Seeds PyTorch's global generators inside the block, and restores their states afterwards."""
    cuda_devices = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(cuda_devices):
        torch.default_generator.manual_seed(seed)
        for cuda_device in cuda_devices:
            torch.cuda.default_generators[cuda_device.index or 0].manual_seed(seed)
        yield
