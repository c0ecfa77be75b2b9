"""Scoring on a second GPU stream while the first one trains the next round.

The host asks for them and goes on. The GPU copies the sums to it, and the host waits only where it reads them.
"""

from collections.abc import Callable

import torch
from torch import nn

from fedexp.core.values import Weights
from fedexp.process.device_clock import Timestamp
from fedexp.scoring.metrics import MetricSet
from fedexp.scoring.scorer import Scorer, Scores, scores_of_chunks
from fedexp.training.client.examples import Examples


class PendingScore:
    """A score that the GPU is still computing or copying to the host.

    It holds the model until it is there: what the first stream frees, it gives to whoever asks next.
    """

    def __init__(
        self, weights: Weights, row: torch.Tensor, begin: Timestamp, end: Timestamp, scored: tuple[Examples, MetricSet]
    ) -> None:
        """`row [2 + n + ...]` is on the host once the GPU has come to `end`: sums, and the outputs that are kept."""
        self.weights, self.row, self.begin, self.end = weights, row, begin, end
        self.examples, self.metric_set = scored

    def result(self) -> Scores:
        """The scores; waits until they are there."""
        seconds = self.begin.seconds_until(self.end)
        row = torch.cat([self.row[:2], self.row.new_full((1,), seconds), self.row[2:]])
        return scores_of_chunks(row[None], self.examples.y, self.metric_set)


class SideStreamScorer:
    """Evaluates models on a second stream with a network of its own, as the first stream may use the scorer's."""

    def __init__(self, scorer: Scorer, network: Callable[[], nn.Module]) -> None:
        """`network` makes one like the scorer's."""
        self.stream = torch.cuda.Stream(priority=-1)  # graphs and convolutions take theirs from those of priority 0
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):  # so that nobody else is given the memory that this stream writes to
            self.scorer = Scorer(
                network(), scorer.layout, scorer.chunk, scorer.row.device, scorer.loss, scorer.metric_set
            )

    def begin(self, weights: Weights, examples: Examples, metric_set: MetricSet) -> PendingScore:
        """Starts scoring a model that the current stream computes."""
        device = weights.flat.device
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            begin = Timestamp(device)
            chunks = [
                self.scorer.compute_sums(weights, examples, metric_set, part) for part in self.scorer.parts(examples)
            ]
            width = 2 + metric_set.width
            sums = torch.stack([chunk[:width] for chunk in chunks]).sum(dim=0)
            outputs = [chunk[width:] for chunk in chunks] if metric_set.kept_outputs else []
            row = (torch.cat([sums, *outputs]) if outputs else sums).to("cpu", non_blocking=True)
            end = Timestamp(device)
        return PendingScore(weights, row, begin, end, (examples, metric_set))
