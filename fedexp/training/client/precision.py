"""The numerical precision of networks: `engine.precision`.

`float32` is the default. On a GPU its kernels are then those that give the same bytes every time, and nothing is
rounded to TF32. `tf32` lets matrix products and convolutions on a GPU round what they multiply to 10 bits. With `bf16`
the layers of a network compute as PyTorch's autocast says: products in bfloat16, the rest in float32; weights,
gradients' sums, losses and everything outside the network stay as they are. Both change results, so a run cannot go on
with another one.
"""

import os
from functools import partial, wraps
from typing import Any

import torch
from torch import nn


def make_deterministic(*, tf32: bool) -> None:
    """Makes this process choose the same kernels every time, and products exact unless `tf32`."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when cuBLAS begins
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True, warn_only=True)  # warns of operations without such a kernel
    # Filling new memory takes time, and nobody reads it before it is written.
    torch.utils.deterministic.fill_uninitialized_memory = False  # pyright: ignore[reportAttributeAccessIssue]


def in_bf16(network: nn.Module) -> nn.Module:
    """Makes the network's forward pass compute in bfloat16 and return float32; returns the network."""
    network.forward = wraps(network.forward)(partial(_autocast_forward, network.forward))
    return network


def computes_in_bf16(network: nn.Module) -> bool:
    """Whether `in_bf16` has wrapped the network and its forward is otherwise that of its class."""
    forward = vars(network).get("forward")
    if not isinstance(forward, partial) or forward.func is not _autocast_forward:
        return False
    return getattr(forward.args[0], "__func__", None) is type(network).forward


def _autocast_forward(forward: Any, *inputs: torch.Tensor) -> torch.Tensor:
    with torch.autocast(inputs[0].device.type, dtype=torch.bfloat16):
        answers = forward(*inputs)
    torch.clear_autocast_cache()  # stale weights would stay where somebody's code has entered autocast and not left it
    return answers.float() if isinstance(answers, torch.Tensor) else answers
