"""Keyed random numbers in training: every draw is a hash of the client, the step and the value's coordinates.

PyTorch's layers draw from one generator, in the order in which clients happen to be computed. Here every draw of a
forward pass is a hash of the row's seed, of the step, of the draw's number in the step and of the value's coordinates.
So a client's masks are the same on every device, whichever clients are trained with it and however its batches are
padded. Legend: R rows that train together.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from fedexp.core.torch_generator import seed_torch
from fedexp.training.client.parameter_views import training_mode

HALF_RANGE = 2**31
GOLDEN = 0x9E3779B9


class KeyedRandom(TorchDispatchMode):
    """A context that draws dropout and noise from the keys set by `begin`; other draws are left to PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds, self.step = torch.zeros(2, dtype=torch.int32), torch.zeros(())
        self.count = 0  # draws so far in this step
        self.prefetched: Prefetched | None = None
        self.max_prefetched = 2**25  # coins that are drawn at once

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: else PyTorch imports its compiler, which takes seconds, to keep it away from `__torch_dispatch__`."""
        return False

    def begin(self, seeds: torch.Tensor, step: torch.Tensor) -> "KeyedRandom":
        """Begins the step number `step` (a scalar) of rows with int32 `seeds [2, R]`, or `[2]` for a single row."""
        self.seeds, self.step, self.count, self.prefetched = seeds, step, 0, None
        return self

    def begin_prefetched(self, seeds: torch.Tensor, steps: torch.Tensor, position: int) -> None:
        """Begins the step at a position of `steps [k]`; `bernoulli` then draws for several of them at once.

        The steps are begun in their order.
        """
        prefetched = (
            Prefetched(step_keys(seeds, steps[:, None]), self.max_prefetched)
            if self.prefetched is None or position == 0
            else self.prefetched
        )
        self.begin(seeds, steps[position])
        self.prefetched, prefetched.position = prefetched, position

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        handler = HANDLERS.get(func)
        if handler is None:
            return func(*args, **(kwargs or {}))
        self.count += 1
        options = {key: value for key, value in (kwargs or {}).items() if key != "generator"}
        return handler(self.uniform, *args, **options)

    def bernoulli(self, x: torch.Tensor, p: float) -> torch.Tensor:
        """Fills `x` (any shape) with the step's next Bernoulli draw: 1 with probability `p`, else 0."""
        self.count += 1
        if self.prefetched is not None:
            return x.copy_(self.prefetched.bernoulli(self.count, x.shape, p))
        return _bernoulli_in_place(self.uniform, x, p)

    def uniform(self, shape: torch.Size, device: torch.device) -> torch.Tensor:
        """Draws uniform numbers in [0, 1) of this `shape`, `[R, ...]`, by hashing coordinates; no R for one row."""
        return uniform(step_keys(self.seeds, self.step).to(device), shape, self.count)


class Prefetched:
    """Bernoulli draws of several steps at once: on a GPU ten steps then take as many kernels as one."""

    def __init__(self, keys: torch.Tensor, max_values: int) -> None:
        """`keys [k, R]` of k steps, from `step_keys`; draws for as many as fit in `max_values` values, one at least."""
        self.keys, self.position, self.max_values = keys, 0, max_values
        self.cache: dict[int, tuple[int, torch.Tensor]] = {}  # by draw: the first step, and those of some from there

    def bernoulli(self, number: int, shape: torch.Size, p: float) -> torch.Tensor:
        """Returns the current step's draw with this number: True with probability `p`, of this `shape`, `[R, ...]`."""
        first, drawn = self.cache.get(number, (0, self.keys[:0]))
        if self.position - first >= len(drawn):
            first = self.position
            next_keys = self.keys[first : first + max(1, self.max_values // shape.numel())]
            drawn = uniform(next_keys, torch.Size((len(next_keys), *shape)), number) < p
            self.cache[number] = first, drawn
        return drawn[self.position - first]


def step_keys(seeds: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """Returns the hash keys of a step (a scalar): int32 `[R]` for `seeds [2, R]`, or a scalar for `[2]`."""
    low, high = seeds
    return mix_bits(low ^ mix_bits(high ^ mix_bits(step.to(torch.int32, copy=True))))


def uniform(keys: torch.Tensor, shape: torch.Size, number: int = 1) -> torch.Tensor:
    """Draws uniform numbers in [0, 1) of this `shape`, `[R, ...]`, for one draw number; a single row has no R."""
    rows = keys.dim()
    if shape[:rows] != keys.shape:
        raise ValueError(f"draws the shape {tuple(shape)} for {keys.shape[0]} clients together")
    bits = mix_bits(keys + to_int32(number * GOLDEN))
    for size in shape[rows:]:
        bits = mix_bits(bits[..., None] ^ _coordinate_hashes(size, keys.device))
    return bits.bitwise_right_shift_(8).bitwise_and_(0xFFFFFF).float().mul_(2**-24)


@cache
def _coordinate_hashes(size: int, device: torch.device) -> torch.Tensor:
    """Hashes the coordinates of a dimension, `[size]`; cached, so that no captured graph computes it again."""
    return mix_bits(torch.arange(size, dtype=torch.int32, device=device))


def keyed_random_for(network: nn.Module, inputs: torch.Tensor) -> KeyedRandom | None:
    """Returns the random context of a network; None if training on `inputs [B, ...]` draws nothing."""
    probe, seeds = KeyedRandom(), torch.zeros(2, dtype=torch.int32, device=inputs.device)
    with seed_torch(0, inputs.device):
        before = torch.get_rng_state()
        with training_mode(network), torch.no_grad(), probe.begin(seeds, seeds[0]):
            network(inputs)
        draws_random = probe.count > 0 or not torch.equal(before, torch.get_rng_state())
    return KeyedRandom() if draws_random else None


Uniform = Callable[[torch.Size, torch.device], torch.Tensor]


def split_seed(seeds: list[int]) -> torch.Tensor:
    """Splits 62-bit seeds into the two int32 halves that `KeyedRandom` takes, `[2, R]`."""
    return torch.tensor(
        [[to_int32(seed) for seed in seeds], [to_int32(seed >> 32) for seed in seeds]], dtype=torch.int32
    )


def to_int32(number: int) -> int:
    """Returns the lower 32 bits as a signed number."""
    return (number + HALF_RANGE) % (2 * HALF_RANGE) - HALF_RANGE


def mix_bits(x: torch.Tensor) -> torch.Tensor:
    """Mixes the bits of int32 numbers (any shape) by a permutation ("lowbias32", C. Wellons 2018), in place."""
    x ^= (x >> 16).bitwise_and_(0xFFFF)
    x *= 0x7FEB352D
    x ^= (x >> 15).bitwise_and_(0x1FFFF)
    x *= to_int32(0x846CA68B)
    x ^= (x >> 16).bitwise_and_(0xFFFF)
    return x


def _normal(u: torch.Tensor) -> torch.Tensor:
    """Standard normal numbers from uniform ones, by the inverse of their distribution."""
    return torch.erfinv(u.double().add_(2**-25).mul_(2).sub_(1)).mul_(math.sqrt(2))


def _bernoulli(draw: Uniform, x: torch.Tensor, p: float | torch.Tensor = 0.5) -> torch.Tensor:
    return (draw(x.shape, x.device) < p).to(x.dtype)


def _bernoulli_in_place(draw: Uniform, x: torch.Tensor, p: float | torch.Tensor = 0.5) -> torch.Tensor:
    return x.copy_(draw(x.shape, x.device) < p)


def _bernoulli_of(draw: Uniform, p: torch.Tensor) -> torch.Tensor:
    return _bernoulli(draw, p, p)


def _dropout(draw: Uniform, x: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    keep_mask = draw(x.shape, x.device) < (1 - p if train is not False else 1.0)  # as a CPU's dropout asks for coins
    factor = 0.0 if p == 1 else 1 / (1 - p)
    return (x * keep_mask * factor if train is not False else x.clone()), keep_mask


def _uniform_in_place(draw: Uniform, x: torch.Tensor, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
    return x.copy_(draw(x.shape, x.device).mul_(high - low).add_(low))


def _normal_in_place(draw: Uniform, x: torch.Tensor, mean: float = 0.0, std: float = 1.0) -> torch.Tensor:
    return x.copy_(_normal(draw(x.shape, x.device)).mul_(std).add_(mean))


def _rand(draw: Uniform, size: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> torch.Tensor:
    return draw(torch.Size(size), torch.device(device or "cpu")).to(dtype or torch.get_default_dtype())


def _randn(draw: Uniform, size: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> torch.Tensor:
    return _normal(draw(torch.Size(size), torch.device(device or "cpu"))).to(dtype or torch.get_default_dtype())


def _rand_like(draw: Uniform, x: torch.Tensor, *, dtype: Any = None, device: Any = None, **_: Any) -> torch.Tensor:
    return draw(x.shape, x.device).to(device or x.device, dtype or x.dtype)


def _randn_like(draw: Uniform, x: torch.Tensor, *, dtype: Any = None, device: Any = None, **_: Any) -> torch.Tensor:
    return _normal(draw(x.shape, x.device)).to(device or x.device, dtype or x.dtype)


_aten = torch.ops.aten
HANDLERS: dict[Any, Callable[..., Any]] = {
    _aten.bernoulli.default: _bernoulli_of,
    _aten.bernoulli.p: _bernoulli,
    _aten.bernoulli_.float: _bernoulli_in_place,
    _aten.bernoulli_.Tensor: _bernoulli_in_place,
    _aten.native_dropout.default: _dropout,
    _aten.normal_.default: _normal_in_place,
    _aten.rand.default: _rand,
    _aten.rand.generator: _rand,
    _aten.rand_like.default: _rand_like,
    _aten.randn.default: _randn,
    _aten.randn.generator: _randn,
    _aten.randn_like.default: _randn_like,
    _aten.uniform_.default: _uniform_in_place,
}
