"""Memory that the forked processes of a run share, for what their jobs compute."""

import math
import mmap

import torch

LINE = 64  # bytes of a cache line, on which every view begins


class SharedArena:
    """Two halves of memory that all forks of this process see, used in turn.

    Whoever writes the next results writes into the other half, so nobody has to wait until all have copied the last
    ones. Every process asks for the same views in the same order. Pages that nobody touches take no memory.
    """

    def __init__(self, half_mb: int) -> None:
        self.half, self.turn = half_mb * 2**20, 0
        self.memory = mmap.mmap(-1, 2 * self.half)  # anonymous: nobody but forks can open it

    def views(self, likes: list[torch.Tensor]) -> list[torch.Tensor]:
        """A view like each of these tensors (any shape), of any content; the tensor itself where there is no room."""
        start, self.turn = self.half * self.turn, 1 - self.turn
        views, end = [], start + self.half
        for like in likes:
            size = math.ceil(like.numel() * like.element_size() / LINE) * LINE
            if not like.numel() or start + size > end:
                views.append(like)
                continue
            flat = torch.frombuffer(self.memory, dtype=like.dtype, count=like.numel(), offset=start)
            views.append(flat.view(like.shape))
            start += size
        return views
