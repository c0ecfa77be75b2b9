"""The last update of every client, as MIFA and FedVARP remember it; a client never heard of counts as zero.

Legend: C uploads, n clients heard of, N clients with examples, D entries of a model.
"""

import numpy as np
import torch

from fedexp.parts import ClientRows, Context, Memory, Uploads, mix_rows


def load_updates(memory: Memory, uploads: Uploads) -> ClientRows:
    """The last updates that a memory holds."""
    return ClientRows.load(memory, uploads.delta.shape[1], uploads.delta)


def mean_update(updates: ClientRows, ctx: Context) -> torch.Tensor:
    """The mean `[D]` of the last updates of all N clients."""
    clients = int(np.count_nonzero(ctx.sizes))
    share = torch.full((1, len(updates.rows)), 1 / clients, dtype=torch.float64, device=updates.rows.device)
    return mix_rows(share, updates.rows)[0]
