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
from fedexp.core.torch_generator import begun_at
from fedexp.training.attributes import Attributes, attributes
from fedexp.training.binding import training_on

Answer = Callable[[nn.Module, torch.Tensor], torch.Tensor]
TIMES = 3  # batches between two looks at the attributes
SAME = 1e-4  # of the largest answer
ALONE = 0.05  # of the largest answer: other kernels for one example may round to bfloat16 elsewhere


def refuse_carried(
    who: str, network: nn.Module, x: torch.Tensor, others: torch.Tensor, first: list[torch.Tensor], answer: Answer
) -> None:
    """Raises ConfigError if a network carries state other than its entries from one batch to the next.

    The network was not yet used. `first` is what one like it said of `x [B, *shape]` in evaluation and then in
    training, when that was new; here it has seen `others [B, *shape]` before.
    """
    built = attributes(network)
    entries = [*network.named_parameters(), *network.named_buffers()]
    values = [(name, entry, entry.clone()) for name, entry in entries]
    _answers(network, others, answer)
    before = attributes(network)
    for _ in range(TIMES):
        _answers(network, others, answer)
    again = _answers(network, x, answer)
    for name, entry, value in values:
        if not torch.allclose(entry, value, rtol=0, atol=0, equal_nan=True):
            raise ConfigError(
                f"{who}: forward must not write to parameters, nor in evaluation to buffers, but writes to {name}; to "
                "tie parameters assign one in __init__: self.b.weight = self.a.weight"
            )
    after = attributes(network)
    moved = moved_attributes(built, before, after)
    same = all(_near(one, other, SAME) for one, other in zip(first, again, strict=True))
    if not same or (moved and not moved[0][1]):
        names = [name for name, _ in (*moved, *moved_attributes(built, built, after))]
        name = names[0] if names else "something outside of its attributes"
        raise ConfigError(
            f"{who}: {name} changes from batch to batch, but only float entries travel with a model, and all else "
            "would go from client to client; begin anew in every forward, or make it a float buffer (register_buffer)"
        )


def moved_attributes(built: Attributes, before: Attributes, after: Attributes) -> list[tuple[str, bool]]:
    """The attributes that changed, and whether each may be a result that is only written, like an attention map.

    The others come first. `built` is how they were when the network was built.
    """
    moved: dict[str, bool] = {}
    for path in {**before, **after}:
        values = before.get(path, ""), after.get(path, "")
        if values[0] != values[1]:
            written = all(value.startswith("float") for value in values) and path not in built_floats(built)
            name = path.partition("[")[0]
            moved[name] = moved.get(name, True) and written
    return sorted(moved.items(), key=lambda each: each[1])


def built_floats(built: Attributes) -> set[str]:
    """Returns the paths of float tensors among a network's attributes."""
    return {path for path, value in built.items() if value.startswith("float")}


def _answers(network: nn.Module, x: torch.Tensor, answer: Answer) -> list[torch.Tensor]:
    """Returns the outputs for `x [B, *shape]` in evaluation and in training mode, each `[B, *outputs]`."""
    with begun_at(0, x.device), torch.no_grad():
        evaluated = answer(network.eval(), x)
    with begun_at(0, x.device), training_on(network):
        return [evaluated, answer(network, x).detach()]


def refuse_neighbours(who: str, network: nn.Module, x: torch.Tensor, mixed: torch.Tensor, answer: Answer) -> None:
    """Raises ConfigError if an answer in evaluation depends on the other examples of its batch.

    `x [B, *shape]` and `mixed [B, *shape]` have the first example and the last one in common.
    """
    with torch.no_grad():
        said, beside, alone = (answer(network.eval(), each) for each in (x, mixed, x[:1]))
    if not _near(said[[0, -1]], beside[[0, -1]], SAME) or not _near(said[:1], alone, ALONE):
        raise ConfigError(
            f"{who}: in evaluation forward must say the same of an example whatever else is in its batch, but does "
            "not; set track_running_stats=True, batch_first=True, and neither squeeze nor average over the examples"
        )


def _near(one: torch.Tensor, other: torch.Tensor, share: float) -> bool:
    """Whether two outputs (any shape) differ by at most a share of the largest number."""
    if one.shape != other.shape:
        return False
    return torch.allclose(one, other, rtol=0, atol=share * float(one.nan_to_num().abs().max()), equal_nan=True)
