"""The card of an exported model, `card.md`: what it is, what it was trained on, how good it is, how it is used."""

import json
import math
import shlex
from collections.abc import Mapping

from fedexp.config import saved_config
from fedexp.core.imports.importing import import_object
from fedexp.export.client_scores import client_scores, example_counts
from fedexp.export.trained_model import TrainedModel
from fedexp.parts.model.torch import factory_arguments
from fedexp.report.draw.markdown import escape_markdown
from fedexp.report.read import runs
from fedexp.report.read.methods import options, single_label
from fedexp.verify.record import RunRecord

NAME = "card.md"
_HEAD = """\
import json, torch
{network}
encoder = json.load(open("encoder.json"))
model.load_state_dict(torch.load("model.pt", weights_only=True))
model.eval()
"""
_SPREADS = {
    "personal_worst_decile": "{}, the worst tenth of clients",
    "personal_best_decile": "{}, the best tenth of clients",
    "personal_std": "{}, standard deviation over clients",
    "personal_jain": "{}, Jain's index over clients",
}
_FROM_SOURCE = "from model import Model\n\nmodel = Model()"
_FROM_FACTORY = "from {module} import {name}\n\nmodel = {name}({arguments})"
_NEEDS_MODULE = " and the module that made the network, which is not in this folder"
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
        if value is None or value != value:
            value = ""
        elif isinstance(value, float) and value.is_integer():
            value = int(value)
        numbers += [float(str(value) == name) for name in column["categories"]]
outputs = model(torch.tensor([numbers], dtype=torch.float32))
"""
_ARRAY = """\
x = torch.zeros(1, {shape}, dtype=torch.{dtype})  # an example as it was stored for training
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
_ACCOUNTANTS = {"epsilon_pld": "privacy loss distributions (PLD)", "epsilon_rdp": "Rényi differential privacy (RDP)"}
_STATISTICS = {
    "pooled": "means, deviations and categories of all training rows",
    "public": "means, deviations and categories of a public table",
    "clipped": "ranges and categories that were given",
}
_NOUNS = {"class": "classes", "labels": "labels", "numbers": "numbers", "tokens": "tokens"}
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


def card(trained: TrainedModel, files: Mapping[str, str], obstacle: str) -> str:
    """The text of the card; `files` are the names of the files with what each holds.

    `obstacle` says why the network's source is not among them, if it is not.
    """
    record = trained.record
    words = saved_config.read(record.folder).overrides
    if trained.exp.privacy.guarantees:
        words = [word for word in words if not saved_config.is_seed(word)]
    owner_text = "Everybody's model" if trained.client is None else f"The model that client {trained.client} uses"
    companion = f"{_NEEDS_MODULE} ({obstacle})" if obstacle else " alone"
    sections = [
        f"# A model of {_title(record)}",
        f"{owner_text} after round {trained.round} of {trained.exp.rounds}. Command of the run, in its folder "
        f"`config.json`:\n\n    fedexp run {_one_line(shlex.join(words))}".rstrip(),
        "## Data",
        _data_text(trained),
        "## Scores",
        _score_table(trained),
        "## Privacy",
        _privacy_text(trained),
        "## Files",
        "\n".join(f"* `{name}`: {text}" for name, text in files.items()),
        "## Use it without fedexp",
        f"In this folder, with PyTorch{companion}:\n\n```python\n{usage(trained, has_source=not obstacle)}\n```",
        "## Use it with fedexp",
        _predict_text(trained),
    ]
    return "\n\n".join(sections) + "\n"


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


def _data_text(trained: TrainedModel) -> str:
    config, summary, encoder = trained.config, trained.record.summary or {}, trained.encoder
    count = f"{len(encoder.answers)} {_NOUNS[encoder.targets]}"
    lines = [f"* Examples are {list(encoder.shape)} of {encoder.dtype}, answers {count}."]
    digest = summary.get("data_sha256")
    if digest and not trained.exp.privacy.guarantees:  # which would tell of every example
        lines.append(f"* SHA-256 of the data as it was loaded: `{digest}`.")
    if encoder.text is not None:
        column = f" of the column `{encoder.text.column}`" if encoder.text.column else ""
        limit = "" if encoder.targets == "tokens" else f"; the first {encoder.shape[0]} count"
        lines.append(f"* Texts{column} are cut into {encoder.text.unit}{limit}.")
    if encoder.columns:
        lines.append(f"* Columns are encoded by {_STATISTICS[config['dataset'].get('statistics', 'pooled')]}.")
    if trained.client_number is not None:
        lines.append(f"* Client {trained.client} has {example_counts(trained.world, trained.client_number)}.")
    if trained.exp.features.layers(encoder.facts) is not None:
        lines.append("* The first layers, `features`, were learnt on the server's public examples.")
    return "\n".join(lines)


def _title(record: RunRecord) -> str:
    """The options of dataset and model, and what the run is called."""
    run = runs.read(record.folder)
    chosen = options(run)
    return f"{chosen.get('dataset', 'its data')}: {chosen.get('model', 'network')}, {single_label(run)}"


def _score_table(trained: TrainedModel) -> str:
    """What metrics.csv says of the round, on which data; above it how good a client's own model is."""
    line, alone = trained.record.lines[trained.round], trained.exp.scenario.trains_alone
    subject = "a mean over the clients' own models" if alone else "everybody's model"
    examples = "own test examples" if trained.exp.evaluation.own_test else "held-out examples"
    spreads = {name: text.format(trained.exp.metrics[0]) for name, text in _SPREADS.items()}
    data_names = {
        "test": f"test examples, {subject}",
        "validation": f"the server's validation examples, {subject}",
        "personal": f"clients' {examples}, the model that each of them uses",
    }
    rows = _client_rows(trained)
    rows += [
        f"| {spreads.get(name, name.partition('_')[2])} | {float(text):.4g} | {data_names[kind]} |"
        for kind in data_names
        for name, text in line.items()
        if name.startswith(f"{kind}_") and text
    ]
    if not rows:
        return "The round was not evaluated."
    table = "\n".join(["| measure | value | on |", "| --- | ---: | --- |", *rows])
    note = (trained.record.summary or {}).get("constant_answer")
    is_last = trained.round == trained.record.finished_rounds and trained.client is None
    return f"{table}\n\nOn the test examples {escape_markdown(_one_line(note))}." if note and is_last else table


def _client_rows(trained: TrainedModel) -> list[str]:
    """The lines of the table on the model of one client alone; none of everybody's model."""
    if trained.client_number is None:
        return []
    return [
        f"| {name} | {value:.4g} | {data} |"
        for data, scores in client_scores(trained.world, trained.weights, trained.client_number)
        for name, value in scores.items()
        if not math.isnan(value)
    ]


def _privacy_text(trained: TrainedModel) -> str:
    privacy = (trained.record.summary or {}).get("privacy")
    if not privacy:
        return "No promise was made: the model may tell of the examples that it was trained on."
    promise = _one_line(str(privacy["promise"]))
    if trained.is_outside_the_promise:
        return (
            "The promise of the run does not cover this model: its client trained it, or a part of it, without "
            f"protection and keeps it to itself. What the client sent is covered: {promise}."
        )
    spent = [f"{privacy[key]:.4g} by {name}" for key, name in _ACCOUNTANTS.items() if _is_number(privacy.get(key))]
    epsilon = f"Epsilon at the end of the run: {', '.join(spent)}. " if spent else ""
    seed = " So the seed is left out here, and so is the digest of the data." if trained.exp.privacy.guarantees else ""
    return f"{epsilon}{promise}. This holds for the end of the run, and for all rounds before it.{seed}"


def _predict_text(trained: TrainedModel) -> str:
    if trained.encoder.targets == "tokens":
        return "`fedexp predict` writes tables, but this model predicts the next token: ask it as above."
    rows = "rows.csv" if trained.encoder.takes_rows else "examples.npy"
    return f"    fedexp predict . {rows} --to answers.csv"


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _one_line(text: str) -> str:
    return " ".join(text.split())
