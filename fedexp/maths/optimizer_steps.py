"""Optimizer steps on rows, in place: the same functions move one client's row and a stack of rows.

`w`, `grad` and each slot have shape `[..., P]`; `active [C, 1]` (or None) freezes the rows where it is 0. A rate is a
number, or a tensor of no dimension that a captured step reads anew.
"""

import numpy as np
import torch

Rate = float | torch.Tensor


def heavy_ball(grad: torch.Tensor, velocity: torch.Tensor, momentum: float, nesterov: bool = False) -> torch.Tensor:
    """The direction `[..., P]` of a step with momentum, without dampening: v <- momentum v + g, in place.

    Then v, or with `nesterov` g + momentum v. All have shape `[..., P]`; v = g at the first step.
    """
    velocity.mul_(momentum).add_(grad)
    return grad.add(velocity, alpha=momentum) if nesterov else velocity


def path_lengths(steps: np.ndarray, momentum: float, nesterov: bool, pull: float) -> np.ndarray:
    """How far so many steps `[n]` go along one gradient of norm 1, in units of the rate, float64 [n].

    That is the sum of the weights that all gradients along the steps have in the update: `steps` for plain SGD. `pull`
    is the part of the way by which each step is drawn back to the start.
    """
    if not momentum and not pull:
        return steps.astype(float)
    length, velocity, lengths = 0.0, 0.0, [0.0]
    for _ in range(int(steps.max(initial=0))):
        grad = 1 - pull * length
        velocity = momentum * velocity + grad
        length += grad + momentum * velocity if nesterov else velocity
        lengths.append(length)
    return np.array(lengths)[steps]


def shortened(grad: torch.Tensor, longest: float) -> torch.Tensor:
    """Each gradient of `[..., P]` scaled to the norm `longest` if its own is larger; others as they are."""
    return grad * (longest / grad.norm(dim=-1, keepdim=True).clamp(min=longest))


def descend(w: torch.Tensor, direction: torch.Tensor, lr: Rate, active: torch.Tensor | None) -> None:
    """Takes the step w <- w - lr direction, both `[..., P]`; rows where `active [C, 1]` is 0 stay."""
    if w.device.type != "cpu" and active is not None:  # one kernel; on a CPU it would round otherwise
        w.addcmul_(direction, active * lr if isinstance(lr, torch.Tensor) else active, value=-_number(lr))
        return
    if isinstance(lr, torch.Tensor):
        w.sub_(direction * (lr if active is None else active * lr))
        return
    if active is not None:
        direction = direction * active
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
    mean, square = slots[0], slots[1]
    if active is None:
        _fused_adam(w, grad, slots, step, settings)
    elif w.device.type != "cpu":
        moved = w.clone(memory_format=torch.contiguous_format)
        _fused_adam(moved, grad, slots, step, settings)
        w.lerp_(moved, active)
    else:
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        scale = torch.sqrt(square / (1 - beta2**step)).add_(eps)
        w.sub_(mean / scale * (active * (lr / (1 - beta1**step))))


def _fused_adam(
    w: torch.Tensor,
    grad: torch.Tensor,
    slots: torch.Tensor,
    step: torch.Tensor,
    settings: tuple[Rate, float, float, float],
) -> None:
    lr, beta1, beta2, eps = settings
    more = {"beta1": beta1, "beta2": beta2, "eps": eps, "weight_decay": 0.0, "amsgrad": False, "maximize": False}
    rate = lr.float() if isinstance(lr, torch.Tensor) and w.device.type != "cpu" else lr
    torch._fused_adam_([w], [grad], [slots[0]], [slots[1]], [], [step], lr=rate, **more)


def _number(lr: Rate) -> float:
    """What a product with a rate that is no number has left: it is in the other factor."""
    return 1.0 if isinstance(lr, torch.Tensor) else lr
