"""What the modules of a network keep beside their entries: attributes, variables of closures, globals of their code."""

import pickle
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Set
from functools import partial
from hashlib import sha256
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

IN_ROWS = ("_parameters", "_buffers", "_modules", "training")
FOREIGN = {"fedexp", "torch", "torchvision", "numpy", *sys.stdlib_module_names}
SIMPLE = (type(None), bool, int, float, complex, str, bytes)
HOLDING = (*SIMPLE, Mapping, list, tuple, deque, Set, torch.Tensor, np.ndarray)

Attributes = dict[str, str]  # by where a value lies, such as `layer.seen[0]`, what stands for it


def attributes(network: nn.Module) -> Attributes:
    """Returns a digest of everything the modules keep beside their entries; equal as long as nothing changes.

    What stands for a tensor of floats begins with `float`.
    """
    walk = AttributeWalk([*network.modules(), *network.parameters(), *network.buffers()])
    for name, layer in network.named_modules():
        for attribute, value in vars(layer).items():
            if attribute not in IN_ROWS:
                walk.visit(f"{name}.{attribute}".lstrip("."), value)
        for kind in type(layer).__mro__:
            if not is_foreign(kind):
                walk.visit_class(kind)
    return walk.leaves


def is_foreign(code: Any) -> bool:
    """Whether a class or function is of a library that keeps nothing between calls, or of fedexp."""
    return str(getattr(code, "__module__", "")).partition(".")[0] in FOREIGN


class AttributeWalk:
    """Visits every object that a value refers to, once."""

    def __init__(self, skipped_values: list[Any]) -> None:
        """Objects in `skipped_values` are not visited."""
        self.leaves: Attributes = {}
        self.visited_values = skipped_values  # so that no other object gets the number of one that is gone
        self.visited_ids = set(map(id, skipped_values))

    def visit(self, path: str, value: Any) -> None:
        """Records the digest of a value, or of everything that it contains."""
        if isinstance(value, SIMPLE):
            self.leaves[path] = repr(value)
            return
        if id(value) in self.visited_ids or isinstance(value, type | ModuleType):
            return
        self.visited_ids.add(id(value))
        self.visited_values.append(value)
        children = list(_children(path, value))
        for child_path, child in children:
            self.visit(child_path, child)
        if not children:
            self.leaves[path] = _digest(value)

    def visit_class(self, kind: type) -> None:
        """Records the digests of what a user's class and its methods hold."""
        for name, value in vars(kind).items():
            value = getattr(value, "__func__", getattr(value, "fget", value))
            if isinstance(value, FunctionType) or not name.startswith("_"):
                self.visit(f"{kind.__name__}.{name}", value)


def _children(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the values that a value contains, with their paths; nothing for a value without parts."""
    if isinstance(value, Mapping):
        yield f"{path}[keys]", _safe_repr(list(value))
        yield from ((f"{path}[{key!r}]", child) for key, child in value.items())
    elif isinstance(value, list | tuple | deque):
        yield f"{path}[length]", len(value)
        yield from ((f"{path}[{index}]", child) for index, child in enumerate(value))
    elif isinstance(value, Set):
        yield f"{path}[members]", str(sorted(map(_safe_repr, value)))
    elif isinstance(value, FunctionType):
        yield from () if is_foreign(value) else _variables(value)
    elif isinstance(value, MethodType):
        yield from ((path, value.__self__), (path, value.__func__))
    elif isinstance(value, partial):
        yield from ((path, value.func), (f"{path}[args]", value.args), (f"{path}[keywords]", value.keywords))
    elif hasattr(value, "__dict__") and not is_foreign(type(value)):
        yield from ((f"{path}.{name}", child) for name, child in vars(value).items())


def _variables(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yields the variables of a function's closure, and the globals of its module that it uses."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name != "__class__":
            try:
                yield f"{name} (closure of {function.__name__})", cell.cell_contents
            except ValueError:  # not yet assigned
                continue
    for name in sorted(_names_used(function.__code__) & function.__globals__.keys()):
        value = function.__globals__[name]
        if isinstance(value, HOLDING) or (isinstance(value, FunctionType) and value.__module__ == function.__module__):
            yield f"{function.__module__}.{name}", value


def _names_used(code: CodeType) -> set[str]:
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*map(_names_used, inner))


def _safe_repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # whatever a user's own __repr__ raises
        return type(value).__name__


def _digest(value: Any) -> str:
    """Returns a digest of a value without parts; the same text for all values that cannot be read."""
    if isinstance(value, torch.Tensor):
        kind = "float" if value.is_floating_point() else "tensor"
        if value.is_meta or value.layout != torch.strided:
            return kind
        flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        return f"{kind} {list(value.shape)} {sha256(flat.tobytes()).hexdigest()}"
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, torch.Generator):
        return _digest(value.get_state())
    try:
        return sha256(pickle.dumps(value)).hexdigest()
    except Exception:  # whatever an object raises that cannot be pickled
        return type(value).__name__
