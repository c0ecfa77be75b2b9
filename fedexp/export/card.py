"""The card of an exported model, `card.md`: what it is, what it was trained on, how good it is, how it is used."""

import math
import shlex
from collections.abc import Mapping

from fedexp.config import saved_config
from fedexp.data.tables.encoding import Column
from fedexp.export.client_scores import client_scores, example_counts
from fedexp.export.trained_model import TrainedModel
from fedexp.export.usage import usage
from fedexp.maths.metric_names import column_text
from fedexp.report.draw.markdown import escape_markdown
from fedexp.report.read import runs
from fedexp.report.read.methods import options, single_label
from fedexp.verify.record import RunRecord

NAME = "card.md"
_NEEDS_MODULE = " and the module that made the network, which is not in this folder"
_ACCOUNTANTS = {"epsilon_pld": "privacy loss distributions (PLD)", "epsilon_rdp": "Rényi differential privacy (RDP)"}
_STATISTICS = {
    "pooled": "means, deviations and categories of all training rows",
    "public": "means, deviations and categories of a public table",
    "clipped": "ranges and categories that were given",
}
_SEED = (
    "The seed and the digest of the data are left out here. A seed that can be guessed, as the default or a small "
    "number, protects nobody: for a model that is given away take a long one that nobody knows."
)
_NOUNS = {"class": "classes", "labels": "labels", "numbers": "numbers", "tokens": "tokens"}


def card(trained: TrainedModel, files: Mapping[str, str], obstacle: str) -> str:
    """The text of the card; `files` are the names of the files with what each holds.

    `obstacle` says why the network's source is not among them, if it is not.
    """
    record = trained.record
    words = saved_config.read_shared(record.folder, with_seed=not trained.draws_noise).overrides
    owner_text = (
        "Everybody's model" if trained.client is None else f"The model that client {_escape(trained.client)} uses"
    )
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
        " ".join([_privacy_text(trained), *([_SEED] if trained.draws_noise else [])]),
        "## Files",
        "\n".join(f"* `{name}`: {text}" for name, text in files.items()),
        "## Use it without fedexp",
        f"In this folder, with PyTorch{companion}:\n\n```python\n{usage(trained, has_source=not obstacle)}\n```",
        "## Use it with fedexp",
        _predict_text(trained),
    ]
    return "\n\n".join(sections) + "\n"


def _data_text(trained: TrainedModel) -> str:
    config, encoder = trained.config, trained.encoder
    count = f"{len(encoder.answers)} {_NOUNS[encoder.targets]}"
    lines = [f"* Examples are {list(encoder.shape)} of {encoder.dtype}, answers {count}."]
    if not trained.draws_noise:  # else it would tell of every example
        lines.append(f"* SHA-256 of the data as it was loaded: `{trained.world.data_sha256}`.")
    if encoder.text is not None:
        column = f" of the column {_escape(encoder.text.column)}" if encoder.text.column else ""
        limit = "" if encoder.targets == "tokens" else f"; the first {encoder.shape[0]} count"
        lines.append(f"* Texts{column} are cut into {encoder.text.unit}{limit}.")
    if encoder.columns:
        lines.append(f"* Columns are encoded by {_STATISTICS[config['dataset'].get('statistics', 'pooled')]}.")
    if trained.client_number is not None:
        lines.append(f"* Client {_escape(trained.client)} has {example_counts(trained.world, trained.client_number)}.")
    if trained.exp.features.layers(encoder.facts) is not None:
        lines.append("* The first layers, `features`, were learnt on the server's public examples.")
    return "\n".join(lines)


def _title(record: RunRecord) -> str:
    """The options of dataset and model, and what the run is called."""
    run = runs.read(record.folder)
    chosen = options(run)
    title = f"{chosen.get('dataset', 'its data')}: {chosen.get('model', 'network')}, {single_label(run)}"
    return _escape(title)


def _score_table(trained: TrainedModel) -> str:
    """What metrics.csv says of the round, on which data; above it how good a client's own model is."""
    line, subject = trained.record.lines[trained.round], "everybody's model"
    if trained.exp.scenario.trains_alone:
        subject = "a mean over the clients' own models"
    elif trained.exp.clustering.has_clusters:
        subject = "the global model, which is no cluster's"
    validation = f"the server's validation examples, {subject}"
    if trained.exp.evaluation.validates_at_clients:
        validation = "clients' validation examples, the model that each of them uses"
    examples = "own test examples" if trained.exp.evaluation.own_test else "held-out examples"
    data_names = {
        "test": f"test examples, {subject}",
        "validation": validation,
        "personal": f"clients' {examples}, the model that each of them uses",
    }
    rows = _client_rows(trained)
    rows += [
        f"| {_escape(column_text(name, trained.exp.metrics[0]))} | {float(text):.4g} | {data_names[kind]} |"
        for kind in data_names
        for name, text in line.items()
        if name.startswith(f"{kind}_") and text
    ]
    if not rows:
        return "The round was not evaluated."
    table = "\n".join(["| measure | value | on |", "| --- | ---: | --- |", *rows])
    table += _scaled_targets_note(trained)
    note = (trained.record.summary or {}).get("constant_answer")
    is_last = trained.round == trained.record.finished_rounds and trained.client is None
    return f"{table}\n\nOn the test examples {_escape(note)}." if note and is_last else table


def _scaled_targets_note(trained: TrainedModel) -> str:
    """In which units errors are, where these are not those of the targets."""
    scaled = [column for column in trained.encoder.target_columns if column != Column(column.name)]
    if not scaled:
        return ""
    deviations = ", ".join(f"{column.std:.4g} for {_escape(column.name)}" for column in scaled)
    source = "public" if trained.config["dataset"].get("statistics") == "public" else "training"
    return (
        f"\n\nRMSE and MAE are in standard deviations of the {source} targets, and losses are of targets that were "
        f"divided by these: {deviations}."
    )


def _client_rows(trained: TrainedModel) -> list[str]:
    """The lines of the table on the model of one client alone; none of everybody's model."""
    if trained.client_number is None:
        return []
    return [
        f"| {_escape(name)} | {value:.4g} | {data} |"
        for data, scores in client_scores(trained.world, trained.weights, trained.client_number)
        for name, value in scores.items()
        if not math.isnan(value)
    ]


def _privacy_text(trained: TrainedModel) -> str:
    privacy = (trained.record.summary or {}).get("privacy")
    if not privacy:
        return "No promise was made: the model may tell of the examples that it was trained on."
    promise = _escape(privacy["promise"])
    if trained.is_outside_the_promise:
        return (
            "The promise of the run does not cover this model: its client trained it, or a part of it, without "
            f"protection and keeps it to itself. What the client sent is covered: {promise}."
        )
    spent = [f"{privacy[key]:.4g} by {name}" for key, name in _ACCOUNTANTS.items() if _is_number(privacy.get(key))]
    epsilon = f"Epsilon at the end of the run: {', '.join(spent)}. " if spent else ""
    return f"{epsilon}{promise}. This holds for the end of the run, and for all rounds before it."


def _predict_text(trained: TrainedModel) -> str:
    if trained.encoder.targets == "tokens":
        return "`fedexp predict` writes tables, but this model predicts the next token: ask it as above."
    rows = "rows.csv" if trained.encoder.takes_rows else "examples.npy"
    return f"    fedexp predict . {rows} --to answers.csv"


def _escape(text: object) -> str:
    """A text of others in one line, which Markdown shows as it is."""
    return escape_markdown(_one_line(str(text)))


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _one_line(text: str) -> str:
    return " ".join(text.split())
