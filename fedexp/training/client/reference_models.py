"""Outputs of reference models on a client's examples, for rules that compare models with the one in training.

They answer in evaluation mode and without gradients: nothing is drawn, and their statistics stay as they are.
Legend: B batch, D entries of a row, M other models.
"""

import copy

import torch
from torch import nn
from torch.func import functional_call

from fedexp.core.values import Layout
from fedexp.parts.local.contract import ModelOutputs
from fedexp.training.client.objective import FeatureRecorder


class ReferenceModels:
    """Reference models of one network, evaluated but never trained."""

    def __init__(self, network: nn.Module, layout: Layout) -> None:
        self.network, self.layout = copy.deepcopy(network).eval(), layout
        self.feature_recorder = FeatureRecorder(self.network)

    def evaluate(self, rows: torch.Tensor, inputs: torch.Tensor) -> tuple[ModelOutputs, ...]:
        """Returns the outputs of each of the models `rows [M, D]` for `inputs [B, *shape]`."""
        return tuple(self._evaluate_row(row, inputs) for row in rows.unbind())

    def _evaluate_row(self, row: torch.Tensor, inputs: torch.Tensor) -> ModelOutputs:
        with torch.no_grad():
            outputs = functional_call(self.network, self.layout.views(row), (inputs,))
            return ModelOutputs(outputs, self.feature_recorder.pop_features(outputs))
