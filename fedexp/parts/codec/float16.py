"""Updates as half-precision numbers, with error feedback (Seide et al. 2014, "1-bit stochastic gradient descent").

A client sends the nearest float16 numbers to its update plus what it still owes, and owes from then on what these leave
out: e' = (d + e) - fp16(d + e), where d is the update and e what was owed. Numbers beyond the range of float16 (65,504)
are sent as its largest. Statistics of the model travel so, too. The simulation keeps a row for every client that was
ever asked.

Deviations: the paper rounds gradients to one bit and scales them. A client that is not heard (a fleet with deadlines)
owes what its rounding lost, not what was not delivered; so does one that breaks off, as if it had trained to the end.
An attack forges what arrives: malicious rows are not rounded, though they count as half the bytes.
"""

import numpy as np
import torch

from fedexp.parts import SERVER, ClientRows, Codec, Context, Memory, Uploads, finite

LARGEST = torch.finfo(torch.float16).max


def round_to_float16(rows: torch.Tensor) -> torch.Tensor:
    """The nearest float16 numbers to `rows [C, D]`, in the type of the rows."""
    return rows.clamp(-LARGEST, LARGEST).half().to(rows.dtype)


class Float16(Codec):
    """Remembers `rows [n, D]`, what the clients `owner [n]` still owe; reports the share of it in what they wanted."""

    ratio = 0.5
    is_lossy = True
    keeps_rows = True

    def encode(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        delta = uploads.delta
        residuals = ClientRows.load(memory, delta.shape[1], delta)
        positions = np.flatnonzero((uploads.owner != SERVER) & finite(delta))
        index, owner = torch.from_numpy(positions).to(delta.device), uploads.owner[positions]
        update = delta[index]
        wanted = update + residuals.restore(owner, torch.zeros_like(update), slice(None))
        sent = round_to_float16(wanted)
        lost = wanted - sent
        share = float(lost.norm() / wanted.norm()) if wanted.any() else None
        after = residuals.with_rows(owner, lost).save() | {"columns": {"lost": share}}
        return uploads.with_delta(delta.index_copy(0, index, sent)), after
