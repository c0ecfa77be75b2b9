"""Writes a network as a class of plain PyTorch, which needs neither fedexp nor the code that made the network.

The network is followed with symbols instead of numbers (`torch.fx`); layers of `torch.nn` become lines of `__init__`,
what happens between them the lines of `forward`. A network whose path depends on the numbers cannot be written so.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx, nn

from fedexp.parts.layers import LSTM, BatchNorm, Residual

CLASS_NAME = "Model"
_HEADER = '''"""The network of an exported model, in plain PyTorch: Model() has the entries of model.pt."""

import torch
from torch import nn

'''
_RELEASED = re.compile(r";\s+\w+(?: = \w+)* = None(?:;.*)?$|  # type: ignore.*$")


class SourceError(ValueError):
    """A network cannot be written as plain PyTorch; the message says why."""


class _Tracer(fx.Tracer):
    """Follows everything but the layers of `torch.nn`, and ours that are such layers outside of training."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, LSTM | BatchNorm) or super().is_leaf_module(m, module_qualified_name)

    def call_module(self, m: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if isinstance(m, Residual):  # whose check of shapes no symbol passes
            return m.body(*args) + m.shortcut(*args)
        return super().call_module(m, forward, args, kwargs)


def network_source(network: nn.Module) -> str:
    """The text of a Python module whose class `Model` is the network, in evaluation, with the same names of entries.

    Raises:
        SourceError: the network cannot be followed, or has layers that are not written by their settings alone.
    """
    tracer = _Tracer()
    try:
        graph = tracer.trace(network.eval())
    except Exception as error:  # whatever a user's forward raises when it is given symbols
        raise SourceError(f"its forward depends on the numbers: {type(error).__name__}") from error
    chain = _chain_of_layers(network, graph)
    return _HEADER + (_chain_text(chain) if chain else _class_text(network, graph))


def _chain_of_layers(network: nn.Module, graph: fx.Graph) -> list[nn.Module]:
    """The layers of a network that is nothing but a sequence of them; none of another one."""
    if type(network) is not nn.Sequential or any(isinstance(layer, LSTM) for layer in network):
        return []
    steps = [str(node.target) for node in graph.nodes if node.op not in ("placeholder", "output")]
    return list(network) if steps == list(map(str, range(len(network)))) else []


def _chain_text(layers: list[nn.Module]) -> str:
    calls = [f"            {_layer_text(layer)}," for layer in layers]
    init = ["    def __init__(self):", "        super().__init__(", *calls, "        )", ""]
    return "\n".join(["", f"class {CLASS_NAME}(nn.Sequential):", *init])


def _class_text(network: nn.Module, graph: fx.Graph) -> str:
    _take_outputs_of_lstm(graph, network)
    declarations = [f"        {line}" for line in _declarations(network, graph)]
    lines = [_RELEASED.sub("", line).rstrip() for line in graph.python_code("self").src.splitlines()]
    lines = [line.replace("torch.nn.", "nn.") for line in lines if line.strip()]
    first = next(number for number, line in enumerate(lines) if line.startswith("def forward"))
    if any("_operator" in line or "fedexp" in line for line in lines):
        raise SourceError("it calls functions that have no public name")
    argument = next(node.target for node in graph.nodes if node.op == "placeholder")
    init = ["    def __init__(self):", "        super().__init__()", *declarations]
    forward = [f"    def forward(self, {argument}):", *(f"    {line}" for line in lines[first + 1 :])]
    return "\n".join(["", f"class {CLASS_NAME}(nn.Module):", *init, "", *forward, ""])


def _take_outputs_of_lstm(graph: fx.Graph, network: nn.Module) -> None:
    """Ours gives the hidden states alone, PyTorch's gives them first."""
    for node in [node for node in graph.nodes if node.op == "call_module"]:
        if isinstance(network.get_submodule(str(node.target)), LSTM):
            with graph.inserting_after(node):
                states = graph.call_function(operator.getitem, (node, 0))
            node.replace_all_uses_with(states, delete_user_cb=lambda user, states=states: user is not states)


def _declarations(network: nn.Module, graph: fx.Graph) -> Iterator[str]:
    """The lines of `__init__`: every layer that the graph uses, then all other entries, in the network's own order."""
    used = {str(node.target) for node in graph.nodes if node.op in ("call_module", "get_attr")}
    parents: set[str] = set()
    entries = _entries_beside_layers(network, used)
    layers = [name for name, _ in network.named_modules(remove_duplicate=False) if name in used]
    for name in [*layers, *entries]:
        for parent in _parents(name):
            if parent not in parents and parent not in used:
                parents.add(parent)
                yield _assignment(parent, "nn.Module()")
        if name in entries:
            entry, kind = entries[name], "parameter" if isinstance(entries[name], nn.Parameter) else "buffer"
            shape = ", ".join(map(str, entry.shape))
            value = f"torch.empty({shape or '()'}, dtype={entry.dtype})"
            value = f"nn.Parameter({value})" if kind == "parameter" else value
            owner, _, own_name = name.rpartition(".")
            yield f"{_access(owner)}.register_{kind}({own_name!r}, {value})"
        else:
            yield _assignment(name, _layer_text(network.get_submodule(name)))


def _entries_beside_layers(network: nn.Module, used: set[str]) -> dict[str, torch.Tensor]:
    """The entries (any shape) that are used by themselves, and those that serve training alone."""
    entries = dict(network.named_parameters(remove_duplicate=False))
    entries |= dict(network.named_buffers(remove_duplicate=False))
    declared = {id(entry) for name, entry in entries.items() if used.intersection([name, *_parents(name)])}
    idle = {name for name in network.state_dict() if name in entries and id(entries[name]) not in declared}
    return {name: entry for name, entry in entries.items() if name in used or name in idle}


def _parents(name: str) -> list[str]:
    pieces = name.split(".")
    return [".".join(pieces[:count]) for count in range(1, len(pieces))]


def _access(name: str) -> str:
    """How the code reaches a submodule by its dotted name."""
    text = "self"
    for piece in filter(None, name.split(".")):
        text = f"{text}.{piece}" if piece.isidentifier() else f"getattr({text}, {piece!r})"
    return text


def _assignment(name: str, value: str) -> str:
    owner, _, own_name = name.rpartition(".")
    if own_name.isidentifier():
        return f"{_access(owner)}.{own_name} = {value}"
    return f"{_access(owner)}.add_module({own_name!r}, {value})"


def _layer_text(layer: nn.Module) -> str:
    """The call that makes a layer, such as `nn.Linear(in_features=4, out_features=2, bias=True)`."""
    if isinstance(layer, BatchNorm):
        return f"nn.BatchNorm2d({layer.num_features}, eps={layer.eps})"
    kind, text = type(layer), repr(layer)
    is_pytorch_s = kind.__module__.startswith("torch.nn.modules.") and getattr(nn, kind.__name__, None) is kind
    if "\n" in text or not (is_pytorch_s or isinstance(layer, LSTM)):
        raise SourceError(f"it has a layer {kind.__name__} that its settings alone do not make")
    _demand_plain_call(f"nn.{text}")
    return f"nn.{text}"


def _demand_plain_call(text: str) -> None:
    """Raises SourceError unless a text is one call whose arguments are written values: it is going to be run."""
    try:
        call = ast.parse(text, mode="eval").body
        assert isinstance(call, ast.Call)
        for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
            ast.literal_eval(argument)
    except (SyntaxError, ValueError, AssertionError) as error:
        raise SourceError(f"{text[:60]} is no call with plain values") from error


def load_source(source: str) -> nn.Module:
    """The network that a text of `network_source` makes; its entries have no values yet."""
    namespace: dict[str, object] = {"__name__": "model"}
    exec(compile(source, "model.py", "exec"), namespace)
    network = namespace[CLASS_NAME]()  # type: ignore[operator]
    assert isinstance(network, nn.Module)
    return network.eval()


def plain_entries(network: nn.Module, source_network: nn.Module) -> dict[str, torch.Tensor]:
    """The network's entries (any shape) by name as the plain one has them, contiguous and on the CPU.

    PyTorch's batch normalisation counts batches, ours does not: it gets a count of 0.
    """
    entries = dict(network.named_buffers(remove_duplicate=False)) | network.state_dict()
    entries = {name: entry.detach().cpu().contiguous() for name, entry in entries.items()}
    return {name: entries.get(name, entry) for name, entry in source_network.state_dict().items()}
