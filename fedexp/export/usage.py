"""The lines of plain PyTorch on the card that load an exported model and ask it about an example."""

import json

from fedexp.core.imports.importing import import_object
from fedexp.export.trained_model import TrainedModel
from fedexp.parts.model.torch import factory_arguments

_HEAD = """\
import json, torch
{network}
encoder = json.load(open("encoder.json", encoding="utf-8"))
model.load_state_dict(torch.load("model.pt", weights_only=True))
model.eval()
"""
_FROM_SOURCE = "from model import Model\n\nmodel = Model()"
_FROM_FACTORY = "from {module} import {name}\n\nmodel = {name}({arguments})"
_TABLE = """\
row = {row}
numbers = []
for column in encoder["columns"]:
    value = row[column["name"]]
    if column["categories"] is None:
        if column["fills_missing"] and (value in (None, "") or value != value):
            value = column["mean"]
        value = float(value)
        low, high = column["bounds"] or (value, value)
        numbers.append((min(max(value, low), high) - column["mean"]) / column["std"])
    else:
        names, value = column["categories"], "" if value is None or value != value else str(value)
        if value not in names:  # whole numbers are the same as 2 and as 2.0
            value = value.removesuffix(".0") if value.endswith(".0") else value + ".0"
        numbers += [float(value == name) for name in names]
outputs = model(torch.tensor([numbers], dtype=torch.float32))
"""
_ARRAY = """\
x = torch.zeros(1, {shape}, dtype=torch.{dtype})  # an example of this shape and type
mean, std = (torch.tensor(encoder[name]){view} for name in ("mean", "std"))
outputs = model((x / encoder["scale"] - mean) / std)
"""
_TOKENS = """\
x = torch.zeros(1, {shape}, dtype=torch.int64)  # numbers of tokens: their places in encoder["vocabulary"]
outputs = model(x)
"""
_TEXT = """\
import re

text = {text}
tokens = {cut}  # then their places in the vocabulary; its first stands for all others
numbers = {{token: number for number, token in enumerate(encoder["vocabulary"])}}
x = torch.zeros(1, {length}, dtype=torch.int64)
x[0, :len(tokens)] = torch.tensor([numbers.get(token, 0) for token in tokens])
outputs = model(x)
"""
_NEXT_TOKEN = """\
numbers = {{token: number for number, token in enumerate(encoder["vocabulary"])}}
tokens = {tokens}  # the text so far, at most {length} tokens of the vocabulary; its first stands for all others
x = torch.zeros(1, {length}, dtype=torch.int64)
x[0, :len(tokens)] = torch.tensor([numbers.get(token, 0) for token in tokens])
outputs = model(x)[0, len(tokens) - 1]  # what stands behind it comes next
"""
_CUTS = {"characters": "list(text)", "words": r're.findall(r"\w+|[^\w\s]", text)'}
_ANSWERS = {
    "class": 'print(dict(zip(encoder["answers"], outputs.softmax(dim=1)[0].tolist())))',
    "labels": 'print(dict(zip(encoder["answers"], outputs.sigmoid()[0].tolist())))',
    "numbers": """\
scale = encoder["target_columns"] or [{"mean": 0, "std": 1}] * len(encoder["answers"])
print([y * t["std"] + t["mean"] for y, t in zip(outputs[0].tolist(), scale)])""",
    "tokens": """\
chances = dict(zip(encoder["answers"], outputs.softmax(dim=0).tolist()))
print(sorted(chances.items(), key=lambda item: -item[1])[:5])  # the likeliest next tokens""",
}


def usage(trained: TrainedModel, *, has_source: bool) -> str:
    """The lines of plain PyTorch that load the model and ask it about an example."""
    encoder, network = trained.encoder, _FROM_SOURCE if has_source else _factory_lines(trained)
    if encoder.columns:
        row = {
            column.name: column.mean if column.categories is None else column.categories[0]
            for column in encoder.columns
            if column.width
        }
        example = _TABLE.format(row=json.dumps(row, ensure_ascii=False))
    elif encoder.targets == "tokens":
        length = encoder.shape[0]
        example = _NEXT_TOKEN.format(tokens=list(encoder.vocabulary[1:4][:length]), length=length)
    elif encoder.text is not None:
        length, text = encoder.shape[0], " ".join(encoder.vocabulary[1:4])
        example = _TEXT.format(text=repr(text), cut=f"{_CUTS[encoder.text.unit]}[:{length}]", length=length)
    else:
        template = _TOKENS if encoder.dtype == "int64" else _ARRAY
        by_channel = f".view(-1{', 1' * (len(encoder.shape) - 1)})"
        example = template.format(shape=", ".join(map(str, encoder.shape)), dtype=encoder.dtype, view=by_channel)
    return _HEAD.format(network=network) + "\n" + example + _ANSWERS[encoder.targets]


def _factory_lines(trained: TrainedModel) -> str:
    """The lines that make the network by the function or class that made it for the run."""
    node, facts = trained.config["model"], trained.encoder.facts
    factory = str(node.get("factory") or node["_target_"].replace(":", "."))
    module, _, name = factory.replace(":", ".").rpartition(".")
    if "factory" not in node:
        return _FROM_FACTORY.format(module=module, name=name, arguments="...")
    keywords = factory_arguments(import_object(factory, "model.factory"), facts, node.get("arguments") or {})
    arguments = ", ".join("facts=..." if value is facts else f"{key}={value!r}" for key, value in keywords.items())
    return _FROM_FACTORY.format(module=module, name=name, arguments=arguments)
