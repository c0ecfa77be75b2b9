"""Checks summary.json, federation.csv and client_scores.csv against the tables, the last state and the world."""

import filecmp
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedexp.core.nested import json_text
from fedexp.core.values import State
from fedexp.files.atomic import display_path
from fedexp.report.topics import federation
from fedexp.run import digests
from fedexp.run.summary import figures
from fedexp.simulation.measures import client_scores
from fedexp.verify.comparison import ROUNDING, differing_lines, values_agree
from fedexp.verify.record import RunRecord, read_table
from fedexp.verify.rerun import Rerun, format_row
from fedexp.verify.tables import reason_to_stop

PROVENANCE = {  # the program and the machine, which cannot be computed again
    "versions": ("fedexp", "python", "torch", "numpy", "hydra-core"),
    "git": ("commit", "dirty"),
    "device": (),
    "instructions": (),
    "engine": ("name", "reason", "workers"),
}

# These are not in older summaries.
_ADDED = ("skipped_rounds", "validation_examples", "constant_answer", "malicious_clients", "without_effect")
_ANSWER = "constant_answer"  # of the last model
_ADDED_COUNT = "positives"  # which older tables do not have


def summary_complaints(record: RunRecord, rerun: Rerun, tolerance: float) -> Iterator[str]:
    """Yields complaints about entries of summary.json that differ when computed again, or that no run writes."""
    path, written = display_path(record.folder / "summary.json"), record.summary
    if written is None:
        return
    try:
        entries = figures(
            rerun.exp, rerun.world, _final_state(record, rerun), record.table, record.tables[digests.NAME]
        )
    except KeyError as lacking:
        yield f"{path} cannot be computed again: metrics.csv has no column {lacking.args[0]}"
        return
    recomputed_entries = json.loads(json_text(entries))
    recomputed_entries |= {} if _has_last_model(record) and not tolerance else {_ANSWER: written.get(_ANSWER)}
    for name, value in recomputed_entries.items():
        measured = "." in name  # before the first round; all else follows from the files
        if name not in written:
            if value is not None and name not in _ADDED:
                yield f"{path} does not say {name}, which comes to {_shorten(value)}"
        elif not name.endswith(".seconds") and not values_agree(
            written[name], value, max(tolerance, ROUNDING) if measured else ROUNDING
        ):
            key, old_value, new_value = _first_difference(name, written[name], value)
            yield f"{path} says {key} {_shorten(old_value)}, but it comes to {_shorten(new_value)}"
    inner = (
        (name, key) for name, expected_keys in PROVENANCE.items() for key in written.get(name) or () if expected_keys
    )
    odd = [name for name in written if name not in recomputed_entries and name not in PROVENANCE]
    for name in [*odd, *(f"{name}.{key}" for name, key in inner if key not in PROVENANCE[name])]:
        yield f"{path} says {name}, which no such run writes"


def federation_complaints(record: RunRecord, rerun: Rerun) -> Iterator[str]:
    """Yields a complaint if federation.csv is not the federation that the config gives."""
    path = record.folder / "federation.csv"
    if not path.is_file():
        yield f"{display_path(path)} is missing"
        return
    with tempfile.TemporaryDirectory() as directory:
        recomputed_file = Path(directory) / path.name
        world = rerun.world
        federation.write_csv(recomputed_file, world.class_counts, world.label_names, world.site_names)
        if not filecmp.cmp(recomputed_file, path, shallow=False):
            yield f"{display_path(path)} is not the federation that the config makes"


def client_scores_complaints(record: RunRecord, rerun: Rerun, tolerance: float) -> Iterator[str]:
    """Yields a complaint if client_scores.csv is not how the last state's models score at the clients."""
    path, saved_state = record.folder / "client_scores.csv", record.last
    if not (record.has_ended and rerun.exp.evaluation.personal):
        if path.is_file():
            yield f"{display_path(path)} is there, but no such run writes it"
    elif saved_state is not None and saved_state.round == record.finished_rounds:
        recomputed_rows = [
            format_row(line) for line in client_scores.score_rows(rerun.exp, rerun.world, rerun.state(saved_state))
        ]
        written_rows = read_table(path, ("client",))
        if not any(_ADDED_COUNT in line for line in written_rows):
            recomputed_rows = [{name: line[name] for name in line if name != _ADDED_COUNT} for line in recomputed_rows]
        if problem := differing_lines(path.name, written_rows, recomputed_rows, tolerance):
            yield f"{display_path(path)}: {problem}"


def _has_last_model(record: RunRecord) -> bool:
    """Whether the state after the last round is there."""
    return record.last is not None and record.last.round == record.finished_rounds


def _final_state(record: RunRecord, rerun: Rerun) -> State:
    """The last state, rebuilt from the tables as far as summary.json needs it."""
    last, world, state = record.lines[record.finished_rounds], rerun.world, record.last
    is_there = _has_last_model(record)
    clocks = state.clocks if state is not None and is_there else last
    return State(
        record.finished_rounds,
        rerun.state(state).models if is_there else (world.first,),
        {"stop": {"reason": reason_to_stop(record, rerun.exp.stop)[1]}},
        float(last["sim_s"] or 0.0),
        float(clocks["host_s"] or 0.0),
        sum(int(line["participants"]) for line in record.lines.values()),
    )


def _first_difference(name: str, written: Any, value: Any) -> tuple[str, Any, Any]:
    """The name of an entry, and its two values; of a mapping those of the first key under which they differ."""
    if isinstance(written, dict) and isinstance(value, dict):
        for key in {**value, **written}:
            if not values_agree(written.get(key), value.get(key), ROUNDING):
                return f"{name}.{key}", written.get(key), value.get(key)
    return name, written, value


def _shorten(value: Any) -> str:
    return json.dumps(value)[:80]
