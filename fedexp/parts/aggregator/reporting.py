"""Base classes of rules over rows that report columns; every column exists in every round.

`ReportingRule` is for rules without a bound, `BoundedRule` for those that tolerate at most f Byzantine rows.
"""

from typing import ClassVar

import torch

from fedexp.parts import Aggregator, Columns, ConfigError, Context, Memory, Tolerant, Uploads, Weights, option


class ReportingRule(Aggregator):
    """An aggregator that reports columns."""

    idle_columns: ClassVar[Columns] = {}  # its columns in a round without usable uploads

    def reduce_and_report(self, delta: torch.Tensor, share: torch.Tensor) -> tuple[torch.Tensor, Columns]:
        """One row `[D]` from the rows `delta [C, D]` and their shares `[C]`, and the columns to report."""
        raise NotImplementedError

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        share = self.shares(uploads)
        if not share.any():
            return weights, {"columns": self.idle_columns}
        row, columns = self.reduce_and_report(uploads.delta, share)
        return Weights(weights.flat + row, weights.layout), {"columns": columns}


class BoundedRule(Tolerant, Aggregator):
    """An aggregator that must be told how many rows may be Byzantine."""

    idle_columns: ClassVar[Columns] = {}  # its own columns in a round in which the model stays

    def reduce_and_report(
        self, delta: torch.Tensor, share: torch.Tensor, byzantine: int
    ) -> tuple[torch.Tensor, Columns]:
        """One row `[D]` from `delta [C, D]`, of which at most `byzantine` are wrong, by shares `[C]`; and columns."""
        raise NotImplementedError

    def reduce_in_round(
        self, weights: Weights, uploads: Uploads, byzantine: int, ctx: Context
    ) -> tuple[torch.Tensor, Columns]:
        """The row `[D]` and columns for the uploads of a round, for rules that look at more than the rows."""
        return self.reduce_and_report(uploads.delta, self.shares(uploads), byzantine)

    def refuse_rows(self, rows: int) -> None:
        if rows and self.max_byzantine(rows) < 0:
            raise ConfigError(
                f"aggregator={option(self)} needs {self.bound}, which {rows} upload{'s' * (rows != 1)} a round do not "
                "allow even for f = 0, so that the model would never move; let more uploads count, or take "
                "aggregator=fedavg"
            )

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        byzantine, columns = self.effective_byzantine(len(uploads.owner), ctx.round)
        if byzantine is None:
            return weights, {"columns": columns | self.idle_columns}
        row, rule_columns = self.reduce_in_round(weights, uploads, byzantine, ctx)
        return Weights(weights.flat + row, weights.layout), {"columns": columns | rule_columns}
