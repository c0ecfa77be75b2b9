"""The contract of codecs: what a client does to its row before it travels up."""

from dataclasses import dataclass

from fedexp.core.part import Part
from fedexp.core.values import Memory, Uploads
from fedexp.parts.context import Context


@dataclass(frozen=True, kw_only=True)
class Codec(Part):
    """What a client does to its row before it travels up. The base sends the row unchanged.

    The row is the client's whole message, `delta [C, W]`: the delta and what the local rule sends beside it.
    """

    ratio = 1.0  # bytes that travel, for each byte of the message as float32
    is_lossy = False  # whether the server gets other numbers than the client had
    keeps_rows = False  # whether clients keep rows between rounds, entry by entry those of the global model

    def encode(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        """The uploads as the server will decode them, and what clients keep. The server's own row does not travel."""
        return uploads, memory
