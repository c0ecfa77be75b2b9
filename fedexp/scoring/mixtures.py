"""Losses of many models, or mixtures of them, on the same examples: what Shapley values and robust rules ask.

Legend: R mixtures, M models mixed, D entries of a row, S examples.
"""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from fedexp.core.values import Layout
from fedexp.scoring.side_by_side import OneByOne, SideBySide
from fedexp.training.examples import Examples
from fedexp.training.workers import Work

BLOCK = 500  # examples of one job
TOGETHER = 8  # convolutional models in one pass on a CPU; more leave its second-level cache
FLOATS = 2**24  # activations of one pass on a CPU


class MixtureScorer:
    """Cuts the evaluation of mixtures in jobs that any idle worker can take."""

    def __init__(self, network: nn.Module, layout: Layout, floats: int, device: torch.device) -> None:
        self.way = (SideBySide if SideBySide.fits(network) else OneByOne)(network, layout)
        spacious = device.type == "cuda"
        self.together = 128 if self.way.linear_first or spacious else TOGETHER
        self.budget = 2**28 if spacious else FLOATS
        self.floats = floats

    def work(self, mix: torch.Tensor | None, rows: torch.Tensor, examples: Examples) -> Work:
        """Jobs for the models `mix [R, M] @ rows [M, D]`, or for each row: loss sums by group of models and block."""
        if mix is None:
            groups = [(None, some) for some in rows.split(self.together)]
        else:
            groups = [(some, rows) for some in mix.split(self.together)]
        blocks = range(0, len(examples), BLOCK)
        out = torch.zeros((len(groups), len(blocks), self.together), dtype=torch.float64, device=rows.device)
        work = Work(out.view(-1, self.together))
        for group in groups:
            for start in blocks:
                block = slice(start, min(start + BLOCK, len(examples)))
                position = np.array([len(work.jobs)])
                work.jobs.append((position, lambda group=group, block=block: self._sums(*group, examples, block)))
        return work

    def means(self, work: Work, mixtures: int, examples: int) -> torch.Tensor:
        """The finished work's sample-weighted mean losses, float64 [R]."""
        groups = -(-mixtures // self.together)
        return work.out.view(groups, -1, self.together).sum(dim=1).flatten()[:mixtures] / examples

    def _sums(self, mix: torch.Tensor | None, rows: torch.Tensor, examples: Examples, block: slice) -> torch.Tensor:
        sums = torch.zeros(self.together, dtype=torch.float64, device=rows.device)
        models = len(rows if mix is None else mix)
        chunk = max(8, self.budget // (self.floats * models))
        with torch.inference_mode():
            for start in range(block.start, block.stop, chunk):
                part = slice(start, min(start + chunk, block.stop))
                logits = self.way.logits(mix, rows, examples.inputs(part))
                labels = examples.y[part].repeat(models)
                losses = F.cross_entropy(logits.flatten(0, 1), labels, reduction="none")
                sums[:models] += losses.view(models, -1).double().sum(dim=1)
        return sums.clone()[None]
