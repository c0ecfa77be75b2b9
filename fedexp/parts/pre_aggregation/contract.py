"""The contract of pre-aggregations: what is done to the rows before any aggregator sees them."""

from fedexp.core.part import Part
from fedexp.core.values import Memory, Uploads
from fedexp.parts.context import Context


class PreAggregation(Part):
    """Mixes or merges the rows before the aggregator. The base leaves them unchanged."""

    averages_rows = False  # whether it mixes the rows of several clients

    @property
    def changes_rows(self) -> bool:
        """Whether it does anything to the rows."""
        return type(self).mix is not PreAggregation.mix

    def mixed_rows(self, rows: int) -> int:
        """How many rows it makes of so many."""
        return rows

    def mix(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        """The rows to aggregate, perhaps fewer than arrived."""
        return uploads, memory
