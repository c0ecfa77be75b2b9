"""Linear layers. Legend: G and R rows, B batch, I inputs, O outputs, T vectors of a sequence."""

import torch
from torch import nn
from torch.nn import functional as F

from fedexp.training.layers.example_gradients import LayerGradients, MaterialisedGradients, OuterProductGradients
from fedexp.training.layers.kind import Activations, Entries, LayerKind, PlannedLayer, Shape, with_bias
from fedexp.training.layers.layer_pass import BatchedContext, LayerPass, ManualContext, whole_lines


class ManualLinear(LayerPass):
    """y = x W^T + b for `x [B, I]`."""

    def __init__(self, layer: nn.Linear, context: ManualContext) -> None:
        self.weight, self.needs_input_grad = layer.weight.detach(), context.needs_input_grad
        self.transposed_weight, self.bias = self.weight.t(), None if layer.bias is None else layer.bias.detach()
        self.weight_grad, self.bias_grad = context.grads["weight"], context.grads.get("bias")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x
        return (
            torch.mm(x, self.transposed_weight)
            if self.bias is None
            else torch.addmm(self.bias, x, self.transposed_weight)
        )

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        torch.mm(grad.t(), self.x, out=self.weight_grad)
        if self.bias_grad is not None:
            torch.sum(grad, 0, out=self.bias_grad)
        return torch.mm(grad, self.weight) if self.needs_input_grad else grad


class BatchedLinear(LayerPass):
    """y = x W^T + b for `x [R, B, I]`."""

    def __init__(self, planned: PlannedLayer, context: BatchedContext) -> None:
        self.inputs, self.needs_input_grad = planned.layer.in_features, context.needs_input_grad
        self.lines, self.grad_lines = whole_lines(context.entries), whole_lines(context.grads)
        self.x = self.lines.new_zeros((len(self.lines), context.batch, self.lines.shape[2]))
        self.x[..., : context.entries.shape[2]] = 1

    @property
    def input_buffer(self) -> torch.Tensor:
        return self.x[..., : self.inputs]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.data_ptr() != self.input_buffer.data_ptr():
            self.input_buffer.copy_(x)
        return torch.bmm(self.x, self.lines.transpose(1, 2))

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        torch.bmm(grad.transpose(1, 2), self.x, out=self.grad_lines)
        return torch.bmm(grad, self.lines[..., : self.inputs]) if self.needs_input_grad else grad


def lines(entries: Entries, flattened: Shape | None) -> torch.Tensor:
    """Returns the weights and the bias as `[O, I + 1]`."""
    weight = entries["weight"]
    if flattened is not None:
        weight = weight.view(len(weight), flattened[0], -1).movedim(1, -1).flatten(1)
    return with_bias(weight, entries)


def evaluate_linear(_layer: nn.Linear, entries: Entries, flow: Activations, rows: int) -> Activations:
    """Evaluates by one product where the inputs are shared, by a batched one where each row has its own."""
    weight, bias = entries["weight"], entries["bias"]
    if flow.form == "shared":
        outputs = F.linear(flow.x, weight.flatten(0, 1), bias.flatten())
        return Activations(outputs.view(len(flow.x), rows, -1).movedim(1, 0), "stacked")
    return Activations(torch.baddbmm(bias[:, None], flow.x, weight.mT), "stacked")


def linear_gradients(layer: nn.Linear, inputs: torch.Tensor, errors: torch.Tensor) -> LayerGradients:
    """Returns the gradients of a linear layer over vectors `[B, I]`, `[B, O]` or sequences `[B, T, I]`, `[B, T, O]`.

    The gradients of a layer over sequences are formed.
    """
    bias = layer.bias is not None
    if inputs.dim() == 2:
        return OuterProductGradients(inputs, errors, bias)
    inputs, errors = inputs.flatten(1, -2), errors.flatten(1, -2)
    weight = (errors.transpose(1, 2) @ inputs).flatten(1)
    return MaterialisedGradients(torch.cat([weight, errors.sum(dim=1)], dim=1) if bias else weight)


KINDS = (
    LayerKind(
        types=(nn.Linear,),
        manual=ManualLinear,
        batched=BatchedLinear,
        supports=lambda _, shape: len(shape) == 1,
        output_shape=lambda layer, _: (layer.out_features,),
        entry_lines=lines,
        evaluator=lambda layer: None if layer.bias is None else evaluate_linear,
        gradient_rule=lambda _: linear_gradients,
        in_bfloat16=True,
        reads_any_order=True,
    ),
)
