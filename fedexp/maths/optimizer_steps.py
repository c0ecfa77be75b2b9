"""Optimizer steps on rows, in place: the same functions move one client's row and a stack of rows.

`w`, `grad` and each slot have shape `[..., P]`; `active [C, 1]` (or None) freezes the rows where it is 0, even if their
gradient is not a number: a product with 0 would be none, either. `active [..., P]` does so entry by entry. A rate is a
number, or a tensor of no dimension that a captured step reads anew.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice, repeat

import numpy as np
import torch

MAX_PIECES, MIN_PIECE = 32, 4096  # the most tensors that one kernel takes are 36
Rate = float | torch.Tensor
# By bytes: bits are masked on a CPU, where torch.where is slow.
INTEGER_TYPES = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def heavy_ball(grad: torch.Tensor, velocity: torch.Tensor, momentum: float, nesterov: bool = False) -> torch.Tensor:
    """The direction `[..., P]` of a step with momentum, without dampening: v <- momentum v + g, in place.

    Then v, or with `nesterov` g + momentum v. All have shape `[..., P]`; v = g at the first step.
    """
    velocity.mul_(momentum).add_(grad)
    return grad.add(velocity, alpha=momentum) if nesterov else velocity


def path_lengths(steps: np.ndarray, momentum: float, nesterov: bool, pull: float) -> np.ndarray:
    """The 1-norm of the weights that the gradients along so many steps `[n]` have in the update, float64 [n].

    In units of the rate: `steps` for plain SGD. `pull` is the part of the way by which each step is drawn back to the
    start. With momentum it swings over: then some weights are negative.
    """
    if not momentum and not pull:
        return steps.astype(float)
    number, negative, lengths = int(steps.max(initial=0)), 0.0, [0.0]
    along, first = (_positions(grads, momentum, nesterov, pull) for grads in (repeat(1.0), chain([1.0], repeat(0.0))))
    for total, weight in islice(zip(along, first, strict=True), number):
        negative += max(0.0, -weight)  # of the gradient so many steps before the end
        lengths.append(total + 2 * negative)
    return np.array(lengths)[steps]


def _positions(grads: Iterable[float], momentum: float, nesterov: bool, pull: float) -> Iterator[float]:
    """Yields the position after each step of rate 1 along these gradients, with momentum and pull."""
    position, velocity = 0.0, 0.0
    for raw_grad in grads:
        grad = raw_grad - pull * position
        velocity = momentum * velocity + grad
        position += grad + momentum * velocity if nesterov else velocity
        yield position


def clip_to_norm(grad: torch.Tensor, max_norm: float) -> torch.Tensor:
    """Clips each gradient of `[..., P]` to the norm `max_norm`; smaller ones stay."""
    return grad * (max_norm / grad.norm(dim=-1, keepdim=True).clamp(min=max_norm))


def mask_rows(values: torch.Tensor, active: torch.Tensor) -> torch.Tensor:
    """The `values [..., P]`, exactly 0 where `active [C, 1]` is 0, even where they are NaN."""
    if values.device.type != "cpu":
        return torch.where(active > 0, values, 0.0)
    integer = INTEGER_TYPES[values.element_size()]
    return (values.view(integer) & -(active > 0).to(integer)).view(values.dtype)


def select_rows(active: torch.Tensor, moved: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """The rows of `moved [..., P]`, and bit for bit those of `before [..., P]` where `active [C, 1]` is 0."""
    if before.device.type != "cpu":
        return torch.where(active > 0, moved, before)
    integer = INTEGER_TYPES[before.element_size()]
    differing = (moved.view(integer) ^ before.view(integer)) & -(active > 0).to(integer)
    return differing.bitwise_xor_(before.view(integer)).view(before.dtype)


def descend(w: torch.Tensor, direction: torch.Tensor, lr: Rate, active: torch.Tensor | None) -> None:
    """Takes the step w <- w - lr direction, both `[..., P]`; rows where `active [C, 1]` is 0 stay."""
    if active is not None:
        direction = mask_rows(direction, active)
    if active is not None and w.device.type != "cpu":  # one kernel; on a CPU it would round otherwise
        if isinstance(lr, torch.Tensor):
            w.addcmul_(direction, active * lr, value=-1.0)
        else:
            w.addcmul_(direction, active, value=-lr)
    elif isinstance(lr, torch.Tensor):
        w.sub_(direction * (lr if active is None else active * lr))
    else:
        w.add_(direction, alpha=-lr)


def adam_step(
    w: torch.Tensor,
    grad: torch.Tensor,
    slots: torch.Tensor,
    step: torch.Tensor,
    settings: tuple[Rate, float, float, float],
    active: torch.Tensor | None,
) -> None:
    """Adam (Kingma & Ba 2015, algorithm 1) with bias correction; `settings` are lr, beta1, beta2, eps.

    `w` and `grad` have shape `[..., P]`, `slots` `[2, ..., P]` (mean and square). `step` is a float tensor that counts
    from 1. A single row is moved by PyTorch's fused kernel, which computes the same rule; so are all rows on a GPU,
    where those that are frozen are put back.
    """
    lr, beta1, beta2, eps = settings
    mean, square = slots.unbind()
    if active is not None and w.device.type == "cpu":
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        scale = torch.sqrt(square / (1 - beta2**step)).add_(eps)
        w.sub_(mask_rows(mean / scale * (active * (lr / (1 - beta1**step))), active))
        return
    moved = w if active is None else w.clone(memory_format=torch.contiguous_format)
    options = {"beta1": beta1, "beta2": beta2, "eps": eps, "weight_decay": 0.0, "amsgrad": False, "maximize": False}
    rate = lr.float() if isinstance(lr, torch.Tensor) and w.device.type != "cpu" else lr
    weights, grads, means, squares = [moved], [grad], [mean], [square]
    if w.device.type != "cpu" and moved.is_contiguous():
        weights, grads, means, squares = (in_pieces(tensor) for tensor in (moved, grad, mean, square))
    torch._fused_adam_(weights, grads, means, squares, [], [step] * len(weights), lr=rate, **options)
    if active is not None:
        torch.where(active > 0, moved, w, out=w)


def in_pieces(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Pieces of a tensor (any shape): a GPU's fused kernel gives 65,536 entries of one tensor to one processor."""
    entries = tensor.reshape(-1)
    return list(entries.split(max(MIN_PIECE, -(-len(entries) // MAX_PIECES // 4) * 4)))
