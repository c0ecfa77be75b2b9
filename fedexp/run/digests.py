"""What a round made, in 32 letters: the digest that a replay of it must come to again.

All models of the round in their order, every entry as float32 on the host; a zero has no sign, since a sum over
workers may lose it. Memories are left out: they hold clocks, and what they do to the models shows in these.
"""

import hashlib
from collections.abc import Sequence

import torch

from fedexp.core.values import Weights

NAME, COLUMNS = "digests.csv", ("round", "digest")


def digest(models: Sequence[Weights]) -> str:
    """BLAKE2b of 16 bytes over the models; 1 ms for 200,000 entries or so."""
    found = hashlib.blake2b(digest_size=16)
    for weights in models:
        row = weights.flat.detach().to("cpu", torch.float32) + 0.0  # minus zero becomes zero
        found.update(f"{len(row)};".encode())
        found.update(row.contiguous().numpy().tobytes())
    return found.hexdigest()
