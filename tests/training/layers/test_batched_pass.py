"""Stacked passes that are written out give what vmap and autograd give, for every row, whatever is padded."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F
from training.chain_networks import CHAINS

from fedexp.core.values import Layout
from fedexp.parts.layers import AddChannel, BatchNorm
from fedexp.parts.local.sgd import SGD
from fedexp.parts.loss.cross_entropy import CrossEntropy
from fedexp.training.client.keyed_random import KeyedRandom, keyed_random_for
from fedexp.training.client.objective import Objective
from fedexp.training.client.precision import in_bf16
from fedexp.training.layers.batched_pass import build_passes, plan_layers
from fedexp.training.layers.kind import PlannedLayer
from fedexp.training.layers.layer_pass import BatchedContext
from fedexp.training.layers.registry import kind_of

ROWS, BATCH = 3, 5
SEEDS = torch.tensor([[3, 4, 5], [6, 7, 8]], dtype=torch.int32)
NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    **CHAINS,
    "images": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(24, 4), nn.ReLU(), nn.Linear(4, 2)), (2, 3, 4)),
    "nested": (lambda: nn.Sequential(nn.Sequential(nn.Flatten(), nn.ReLU()), nn.Linear(6, 2)), (2, 3)),
    "pools": (
        lambda: nn.Sequential(
            *(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 1), nn.MaxPool2d(3, 1, 1)),
            *(nn.ReLU(), nn.Conv2d(4, 4, 2, padding=1), nn.MaxPool2d(3, ceil_mode=True), nn.Flatten()),
            *(nn.ReLU(), nn.Linear(16, 2)),
        ),
        (2, 7, 6),
    ),
    "signals": (
        lambda: nn.Sequential(
            *(AddChannel(), nn.Conv1d(1, 3, 3, padding=1), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(3, 2, 2)),
            *(nn.MaxPool1d(2, 1, 1), nn.Dropout(0.2), nn.Flatten(), nn.Linear(8, 2)),
        ),
        (8,),
    ),
    "norms": (
        lambda: nn.Sequential(
            *(nn.Conv2d(2, 4, 3), BatchNorm(4), nn.ReLU(), nn.Conv2d(4, 4, 1), nn.GroupNorm(2, 4)),
            *(nn.Tanh(), BatchNorm(4), nn.Flatten(), nn.Linear(16, 2)),
        ),
        (2, 4, 4),
    ),
    "norms of signals": (
        lambda: nn.Sequential(
            nn.GroupNorm(1, 2), nn.Conv1d(2, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(8, 2)
        ),
        (2, 4),
    ),
}
LEFT = {
    "unknown": (lambda: nn.Sequential(nn.Linear(3, 2), nn.Softplus()), (3,)),
    "vectors in rows": (lambda: nn.Sequential(nn.Linear(3, 2)), (4, 3)),
    "images at the end": (lambda: nn.Sequential(nn.Conv2d(1, 2, 3)), (1, 4, 4)),
    "padded all round": (lambda: nn.Sequential(nn.Conv2d(1, 2, 3, padding_mode="circular"), nn.Flatten()), (1, 4, 4)),
    "without entries": (lambda: nn.Sequential(nn.ReLU()), (3,)),
    "no scale": (lambda: nn.Sequential(nn.GroupNorm(1, 2, affine=False), nn.Flatten(), nn.Linear(8, 2)), (2, 4)),
    "an entry beside": (lambda: Beside(), (3,)),
}


class Beside(nn.Sequential):
    """A chain with an entry that no layer has."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(3, 2))
        self.more = nn.Parameter(torch.zeros(2))


def lying(x: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Examples `[R, B, *shape]` as the engine stores them; signals as images of height 1."""
    return x.movedim(2, -1).unsqueeze(2) if len(shape) == 2 else x.movedim(2, -1) if len(shape) == 3 else x


MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]], dtype=torch.bool)


def by_vmap(
    network: nn.Module, layout: Layout, rows: torch.Tensor, draws: KeyedRandom | None, x: torch.Tensor, y: torch.Tensor
):
    """Gradients, costs and moved buffers of `rows [R, D]`."""
    norms = [layer for layer in network.modules() if isinstance(layer, BatchNorm)]

    def loss(w: torch.Tensor, buffers: torch.Tensor, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor):
        for layer in norms:
            layer.mask = mask
        outputs = functional_call(network, layout.views(torch.cat([w, buffers])), (x,))
        moved = [entry for layer in norms for entry in layer.updated or ()]
        total = (F.cross_entropy(outputs, y, reduction="none") * mask).sum() / mask.sum().clamp(min=1)
        return total, (total.detach(), torch.cat(moved) if moved else buffers)

    with draws.begin(SEEDS, torch.zeros(())) if draws else nullcontext():
        w, moved = rows.split([layout.parameters, layout.size - layout.parameters], dim=1)
        gradient, (costs, buffers) = vmap(grad(loss, has_aux=True), randomness="different")(w, moved, x, y, MASK)
    return gradient, costs, buffers


@pytest.mark.parametrize("memory_mb", [2048.0, 1e-6])  # which decides how convolutions are done
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_are_those_of_vmap(name: str, dtype: torch.dtype, memory_mb: float):
    make, shape = NETWORKS[name]
    generator = torch.Generator().manual_seed(1)
    network = make().to(dtype).train()
    layout = Layout.of(network)
    rows = layout.flatten(network) + 0.1 * torch.randn((ROWS, layout.size), generator=generator).to(dtype)
    rows[:, layout.parameters :].abs_()
    x = torch.randn((ROWS, BATCH, *shape), generator=generator).to(dtype)
    y = torch.randint(2, (ROWS, BATCH), generator=generator)
    draws = keyed_random_for(network, x[0])
    gradient, costs, buffers = by_vmap(network, layout, rows, draws, x, y)
    assert gradient.abs().sum() > 0

    plan = plan_layers(network, layout, shape)
    assert plan is not None
    held = rows[:, torch.cat([plan.order, torch.arange(layout.parameters, layout.size)])].contiguous()
    found, share = torch.full_like(gradient, torch.nan), MASK / MASK.sum(dim=1, keepdim=True).clamp(min=1).to(dtype)
    ours = build_passes(plan, held, found, BATCH, memory_mb, draws)
    if draws is not None:
        draws.begin(SEEDS, torch.zeros(()))
    outputs = ours.forward(lying(x, shape), share)
    loss, slope = CrossEntropy().grads(outputs, y, share) or (None, None)
    assert slope is not None
    ours.backward(slope)
    near: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12} if dtype == torch.float64 else {"rtol": 1e-4, "atol": 1e-6}
    torch.testing.assert_close(loss, costs, **near)
    torch.testing.assert_close(found, gradient[:, plan.order], **near)
    torch.testing.assert_close(held[:, layout.parameters :], buffers, **near)


@pytest.mark.parametrize("memory_mb", [2048.0, 1e-6])
@pytest.mark.parametrize("name", NETWORKS)
def test_in_bfloat16_they_are_as_near_to_float32_as_autocast_is(name: str, memory_mb: float):
    make, shape = NETWORKS[name]
    generator, network = torch.Generator().manual_seed(1), make().train()
    layout = Layout.of(network)
    rows = 0.4 * torch.randn((ROWS, layout.size), generator=generator)
    rows[:, layout.parameters :].abs_()
    x, y = torch.randn((ROWS, BATCH, *shape), generator=generator), torch.randint(2, (ROWS, BATCH), generator=generator)
    draws = keyed_random_for(network, x[0])
    exact, costs, _ = by_vmap(network, layout, rows, draws, x, y)
    autocast, near, _ = by_vmap(in_bf16(network), layout, rows, draws, x, y)

    plan = plan_layers(network, layout, shape)
    assert plan is not None
    assert plan.bf16
    held = rows[:, torch.cat([plan.order, torch.arange(layout.parameters, layout.size)])].contiguous()
    found, share = torch.full_like(exact, torch.nan), MASK / MASK.sum(dim=1, keepdim=True).clamp(min=1)
    ours = build_passes(plan, held, found, BATCH, memory_mb, draws)
    if draws is not None:
        draws.begin(SEEDS, torch.zeros(()))
    outputs = ours.forward(lying(x, shape), share)
    assert outputs.dtype == torch.float32
    loss, slope = CrossEntropy().grads(outputs, y, share) or (None, None)
    assert loss is not None
    assert slope is not None
    ours.backward(slope)
    found = found[:, plan.order.argsort()]
    assert not torch.equal(found, exact)
    for each, theirs, truth in ((found, autocast, exact), (loss, near, costs)):
        assert (each - truth).norm() <= (theirs - truth).norm() + 0.002 * truth.norm()
        assert (each - truth).norm() <= 0.03 * truth.norm()


@pytest.mark.parametrize(
    "loss", [CrossEntropy(), CrossEntropy(label_smoothing=0.2), CrossEntropy(class_weights=(1, 3))]
)
def test_slopes_of_all_rows_are_those_of_each_batch(loss: CrossEntropy):
    outputs = torch.randn((ROWS, BATCH, 2), generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    y, share = torch.arange(ROWS * BATCH).view(ROWS, BATCH) % 2, MASK / 5.0
    objective = Objective(loss, SGD(), nn.Linear(1, 1))
    costs, slopes = objective.grads(outputs, y, share.double())
    for row in range(ROWS):
        leaf = outputs[row].clone().requires_grad_()
        total = (loss.per_example(leaf, y[row]) * share[row]).sum()
        torch.testing.assert_close(costs[row], total.detach(), rtol=1e-6, atol=1e-9)
        torch.testing.assert_close(slopes[row], torch.autograd.grad(total, leaf)[0], rtol=1e-6, atol=1e-9)


def test_a_row_without_examples_costs_nothing_and_moves_no_statistics():
    outputs, share = torch.zeros(2, 3, 2), torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])
    outputs[share == 0] = torch.nan
    costs, _ = Objective(CrossEntropy(label_smoothing=0.2), SGD(), nn.Linear(1, 1)).grads(
        outputs, torch.zeros(2, 3, dtype=torch.int64), share
    )
    torch.testing.assert_close(costs, torch.tensor([2.0, 1.0]).log())
    running, entries = {"running_mean": torch.zeros(2, 4), "running_var": torch.ones(2, 4)}, torch.ones(2, 2, 4)
    kind, layer = kind_of(BatchNorm(4)), BatchNorm(4)
    assert kind is not None
    norm = kind.batched(
        PlannedLayer("", layer, kind, (4, 5, 5)), BatchedContext(entries, entries.clone(), running, 3, 1.0, False, None)
    )
    norm.share = share
    norm.forward(torch.full((2, 3, 5, 5, 4), torch.inf))
    assert running["running_mean"][1].tolist() == [0.0] * 4
    assert running["running_var"][1].tolist() == [1.0] * 4


@pytest.mark.parametrize("name", LEFT)
def test_anything_else_is_left_to_vmap(name: str):
    make, shape = LEFT[name]
    network = make()
    assert plan_layers(network, Layout.of(network), shape) is None
