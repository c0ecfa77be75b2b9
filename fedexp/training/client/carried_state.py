"""Checks by trying that a network's output depends only on its entries and on the example.

A client's model is its row. What a module keeps elsewhere from one batch to the next (a hidden state, a counter, a list
in a closure) would go from client to client, and how many clients a process trains would change the result. So it is
refused; a cache, and a tensor that nobody reads, are not. Nor may an answer in evaluation depend on the other examples
of its batch, whose size is a matter of memory. Legend: B batch.
"""

from collections.abc import Callable

import torch
from torch import nn

from fedexp.core.errors import ConfigError
from fedexp.core.torch_generator import seed_torch
from fedexp.training.client.attributes import Attributes, attributes
from fedexp.training.client.parameter_views import training_mode

Forward = Callable[[nn.Module, torch.Tensor], torch.Tensor]
PROBE_BATCHES = 3  # batches between two looks at the attributes
SAME_TOLERANCE = 1e-4  # of the largest answer
SINGLE_TOLERANCE = 0.05  # of the largest answer: other kernels for one example may round to bfloat16 elsewhere


def refuse_carried_state(
    subject: str,
    network: nn.Module,
    x: torch.Tensor,
    other_x: torch.Tensor,
    first_answers: list[torch.Tensor],
    forward: Forward,
) -> None:
    """Raises ConfigError if a network carries state other than its entries from one batch to the next.

    The network was not yet used. `first_answers` is what one like it said of `x [B, *shape]` in evaluation and then in
    training, when that was new; here it has seen `other_x [B, *shape]` before.
    """
    initial = attributes(network)
    entries = [*network.named_parameters(), *network.named_buffers()]
    values = [(name, entry, entry.clone()) for name, entry in entries]
    _answers(network, other_x, forward)
    before = attributes(network)
    for _ in range(PROBE_BATCHES):
        _answers(network, other_x, forward)
    later_answers = _answers(network, x, forward)
    for name, entry, value in values:
        if not torch.allclose(entry, value, rtol=0, atol=0, equal_nan=True):
            raise ConfigError(
                f"{subject}: forward must not write to parameters, nor in evaluation to buffers, but writes to {name}; "
                "to tie parameters assign one in __init__: self.b.weight = self.a.weight"
            )
    after = attributes(network)
    moved = moved_attributes(initial, before, after)
    same = all(is_close(early, late, SAME_TOLERANCE) for early, late in zip(first_answers, later_answers, strict=True))
    if not same or (moved and not moved[0][1]):
        names = [name for name, _ in (*moved, *moved_attributes(initial, initial, after))]
        name = names[0] if names else "something outside of its attributes"
        raise ConfigError(
            f"{subject}: {name} changes from batch to batch, but only float entries travel with a model, and all else "
            "would go from client to client; begin anew in every forward, or make it a float buffer (register_buffer)"
        )


def moved_attributes(initial: Attributes, before: Attributes, after: Attributes) -> list[tuple[str, bool]]:
    """The attributes that changed, and whether each may be a result that is only written, like an attention map.

    The others come first. `initial` is how they were when the network was built.
    """
    moved: dict[str, bool] = {}
    for path in {**before, **after}:
        values = before.get(path, ""), after.get(path, "")
        if values[0] != values[1]:
            written = all(value.startswith("float") for value in values) and not initial.get(path, "").startswith(
                "float"
            )
            name = path.partition("[")[0]
            moved[name] = moved.get(name, True) and written
    return sorted(moved.items(), key=lambda item: item[1])


def _answers(network: nn.Module, x: torch.Tensor, forward: Forward) -> list[torch.Tensor]:
    """Returns the outputs for `x [B, *shape]` in evaluation and in training mode, each `[B, *outputs]`."""
    with seed_torch(0, x.device), torch.no_grad():
        evaluated = forward(network.eval(), x)
    with seed_torch(0, x.device), training_mode(network):
        return [evaluated, forward(network, x).detach()]


def refuse_batch_dependence(
    subject: str, network: nn.Module, x: torch.Tensor, mixed_x: torch.Tensor, forward: Forward
) -> None:
    """Raises ConfigError if an answer in evaluation depends on the other examples of its batch.

    `x [B, *shape]` and `mixed_x [B, *shape]` have the first example and the last one in common.
    """
    with torch.no_grad():
        answers, mixed_answers, single_answer = (forward(network.eval(), batch) for batch in (x, mixed_x, x[:1]))
    if not is_close(answers[[0, -1]], mixed_answers[[0, -1]], SAME_TOLERANCE) or not is_close(
        answers[:1], single_answer, SINGLE_TOLERANCE
    ):
        raise ConfigError(
            f"{subject}: in evaluation forward must say the same of an example whatever else is in its batch, but does "
            "not; set track_running_stats=True, batch_first=True, and neither squeeze nor average over the examples"
        )


def is_close(first: torch.Tensor, second: torch.Tensor, share: float) -> bool:
    """Whether two outputs (any shape) differ by at most a share of the largest number."""
    if (first.shape, first.dtype) != (second.shape, second.dtype):
        return False
    return torch.allclose(first, second, rtol=0, atol=share * float(first.nan_to_num().abs().max()), equal_nan=True)
