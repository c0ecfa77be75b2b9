"""What stands in an operator's arguments and results; PyTorch's own walk takes longer than the operator."""

from typing import Any


def leaves(values: Any) -> list[Any]:
    """All that is no list, tuple or dict, in the order of `torch.utils._pytree`."""
    if isinstance(values, list | tuple):
        return [leaf for each in values for leaf in leaves(each)]
    if isinstance(values, dict):
        return leaves(list(values.values()))
    return [values]
