"""Loss and metrics of models on the server's data, cut in chunks that any idle worker can take.

Legend: n models, B examples of a batch, S examples, K classes.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from fedexp.core.values import Layout, Weights
from fedexp.parts.loss.contract import Loss
from fedexp.process.device_clock import synchronized_time
from fedexp.scoring.metrics import MetricSet
from fedexp.training.client.examples import Examples
from fedexp.training.client.parameter_views import view_parameters
from fedexp.training.layers.inference_pass import inference_pass
from fedexp.training.workers.pool import EVALUATION, LOSSES, Work


@dataclass(frozen=True)
class Scores:
    """Sample-weighted mean loss, every metric by its name, and the seconds of computing that they took."""

    loss: float
    metrics: dict[str, float]
    seconds: float

    def columns(self, kind: str) -> dict[str, float]:
        """The loss and the metrics by the names of their columns, for examples of this `kind`."""
        return {f"{kind}_loss": self.loss, **{f"{kind}_{name}": value for name, value in self.metrics.items()}}


def scores_of_chunks(rows: torch.Tensor, targets: torch.Tensor, metric_set: MetricSet) -> Scores:
    """The scores of examples with these `targets [S, ...]`, of which each chunk has a row `[3 + n + ...]`.

    It holds loss sum, examples, seconds, sums of the metrics, and the probabilities of its examples where they are
    kept; the row of the last chunk may be longer than its examples need.
    """
    width = 3 + metric_set.width
    loss, count, seconds, *sums = rows[:, :width].sum(dim=0).tolist()
    if not metric_set.kept_outputs:
        return Scores(loss / count, metric_set.values(np.array(sums)), seconds)
    begin = time.perf_counter()
    probabilities = rows[:, width:].reshape(-1, metric_set.kept_outputs)[: len(targets)]
    metrics = metric_set.values(np.array(sums), probabilities.cpu().numpy(), targets.cpu().numpy())
    return Scores(loss / count, metrics, seconds + time.perf_counter() - begin)


class DeferredScore:
    """A score whose chunks may still be computed by other workers."""

    def __init__(
        self, work: Work, finish: Callable[[Work], None], targets: torch.Tensor, metric_set: MetricSet
    ) -> None:
        """`targets [S, ...]` are those of the examples."""
        self.work, self.finish, self.targets, self.metric_set = work, finish, targets, metric_set

    def result(self) -> Scores:
        """The scores; computes the chunks that no worker has computed yet."""
        self.finish(self.work)
        return scores_of_chunks(self.work.out, self.targets, self.metric_set)


class Scorer:
    """Evaluates models with one network of its own, in eval mode and without gradients.

    The network's entries take the shapes of the model's layout, so a model with wider linear layers can be evaluated,
    too.
    """

    def __init__(
        self, network: nn.Module, layout: Layout, chunk: int, device: torch.device, loss: Loss, metric_set: MetricSet
    ) -> None:
        self.network = network.eval()
        self.forward = inference_pass(network)
        self.chunk, self.loss, self.metric_set = chunk, loss, metric_set
        self.layout, self.row = layout, torch.zeros(layout.size, device=device)
        view_parameters(network, layout, self.row)

    def logits(self, weights: Weights, inputs: torch.Tensor) -> torch.Tensor:
        """A model's logits `[B, K]` for a batch `inputs [B, *shape]`."""
        if weights.layout != self.layout:
            self.layout, self.row = weights.layout, torch.zeros_like(weights.flat)
            view_parameters(self.network, self.layout, self.row)
        self.row.copy_(weights.flat)
        with torch.inference_mode():
            return self.forward(inputs)

    def work(self, weights: Weights, examples: Examples, metric_set: MetricSet) -> Work:
        """The evaluation of one model as jobs, one a chunk, which give the rows of `scores_of_chunks`."""
        jobs = [
            (np.array([position]), lambda part=part: self._chunk_row(weights, examples, metric_set, part))
            for position, part in enumerate(self.parts(examples))
        ]
        width = self._row_width(metric_set)
        out = torch.zeros((len(jobs), width), dtype=torch.float64, device=weights.flat.device)
        sizes = [len(examples.y[part]) for part in self.parts(examples)]
        return Work(out, jobs, EVALUATION, np.array(sizes, dtype=float))

    def parts(self, examples: Examples) -> list[slice]:
        """The slices of the chunks."""
        return [slice(start, start + self.chunk) for start in range(0, len(examples), self.chunk)]

    def losses_work(self, weights: Weights, examples: Examples, index: torch.Tensor) -> Work:
        """The loss of every example at the positions `index [S]`, as `[S, 1]`, in jobs of one chunk each."""
        jobs = []
        for start in range(0, len(index), self.chunk):
            part = index[start : start + self.chunk]
            positions = np.arange(start, start + len(part))
            jobs.append((positions, lambda part=part: self._losses(weights, examples, part)))
        return Work(torch.zeros((len(index), 1), device=weights.flat.device), jobs, LOSSES)

    def outputs_work(self, models: list[Weights], examples: Examples, classes: int) -> Work:
        """The log-probabilities `[n, S, K]` that the models give the examples, a job each."""
        work = Work(torch.zeros((len(models), len(examples), classes), device=examples.x.device))
        for position, weights in enumerate(models):
            work.jobs.append((np.array([position]), lambda weights=weights: self._outputs(weights, examples)[None]))
        return work

    def mean_loss(self, weights: Weights, examples: Examples, index: torch.Tensor) -> float:
        """Sample-weighted mean loss of a model on the examples at the positions `index [S]`; NaN if there are none."""
        if len(index) == 0:
            return float("nan")
        parts = index.split(self.chunk)
        return float(sum(self.compute_sums(weights, examples, self.metric_set, part)[0] for part in parts) / len(index))

    def score(
        self, weights: Weights, examples: Examples, metric_set: MetricSet, index: torch.Tensor | None = None
    ) -> Scores:
        """The scores at the positions `index [S]`, not empty, or of all examples."""
        if index is None:
            index = torch.arange(len(examples), device=weights.flat.device)
        rows = [self._chunk_row(weights, examples, metric_set, part) for part in index.split(self.chunk)]
        return scores_of_chunks(torch.stack(rows), examples.y[index], metric_set)

    def _outputs(self, weights: Weights, examples: Examples) -> torch.Tensor:
        parts = [self.logits(weights, examples.inputs(part)) for part in self.parts(examples)]
        with torch.inference_mode():
            return F.log_softmax(torch.cat(parts), dim=1)

    def _losses(self, weights: Weights, examples: Examples, index: torch.Tensor) -> torch.Tensor:
        logits = self.logits(weights, examples.inputs(index))
        with torch.inference_mode():
            return self.loss.evaluation_losses(logits, examples.y[index])[:, None].clone()

    def _row_width(self, metric_set: MetricSet) -> int:
        return 3 + metric_set.width + self.chunk * metric_set.kept_outputs

    def _chunk_row(
        self, weights: Weights, examples: Examples, metric_set: MetricSet, index: torch.Tensor | slice
    ) -> torch.Tensor:
        begin = synchronized_time(weights.flat.device)
        sums = self.compute_sums(weights, examples, metric_set, index)
        spent = sums.new_full((1,), synchronized_time(weights.flat.device) - begin)
        row = torch.cat([sums[:2], spent, sums[2:]])
        return F.pad(row, (0, self._row_width(metric_set) - len(row))) if metric_set.kept_outputs else row

    def compute_sums(
        self, weights: Weights, examples: Examples, metric_set: MetricSet, index: torch.Tensor | slice
    ) -> torch.Tensor:
        """Loss sum, examples and sums of the metrics, `[2 + n]`, at the positions `index [S]`; waits for no device.

        Behind them come the probabilities of the examples, where they are kept.
        """
        labels = examples.y[index]
        logits = self.logits(weights, examples.inputs(index))
        with torch.inference_mode():
            loss = self.loss.total(logits, labels)
            sums = metric_set.sums(logits, labels)
        return torch.cat([loss[None], loss.new_full((1,), len(labels)), sums]).clone()
