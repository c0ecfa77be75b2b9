"""The contract of pre-aggregations: what is done to the rows before any aggregator sees them."""

from dataclasses import dataclass

from fedexp.core.part import Part
from fedexp.core.values import Memory, Uploads
from fedexp.parts.context import Context


@dataclass(frozen=True, kw_only=True)
class PreAggregation(Part):
    """What the server makes of the rows before any aggregator sees them. The base leaves them as they are."""

    averages_rows = False  # whether it mixes the rows of several clients

    def mix(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        """The rows to combine, perhaps fewer of them."""
        return uploads, memory
