"""Checks summary.json, federation.csv and client_accuracy.csv against the tables, the last state and the world."""

import json
import math
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedexp.core.files import shown
from fedexp.core.values import State
from fedexp.parts.federation.statistics import class_counts
from fedexp.report import federation
from fedexp.run.summary import as_json, figures
from fedexp.simulation.measures import client_accuracy
from fedexp.verify.comparing import differing_lines
from fedexp.verify.recorded import Recorded, read_whole
from fedexp.verify.replay import Stage, texts
from fedexp.verify.tables import reason_to_stop

ROUNDING = 1e-9
MADE_WITH = {  # the program and the machine, which cannot be computed again
    "versions": ("fedexp", "python", "torch", "numpy", "hydra-core"),
    "git": ("commit", "dirty"),
    "device": (),
    "instructions": (),
    "engine": ("name", "reason", "workers"),
}


def odd_summary(recorded: Recorded, ready: Stage, tolerance: float) -> Iterator[str]:
    """Yields complaints about entries of summary.json that differ when computed again, or that no run writes."""
    path, written = shown(recorded.folder / "summary.json"), recorded.summary
    if written is None:
        return
    try:
        found = json.loads(
            as_json(figures(ready.exp, ready.world, _end(recorded, ready), recorded.table, _counts(ready)))
        )
    except KeyError as lacking:
        yield f"{path} cannot be computed again: metrics.csv has no column {lacking.args[0]}"
        return
    for name, value in found.items():
        prepared = "." in name  # measured before the first round
        if name not in written:
            if value is not None:
                yield f"{path} does not say {name}, which comes to {_cut(value)}"
        elif not name.endswith(".seconds") and not same(written[name], value, tolerance if prepared else ROUNDING):
            yield f"{path} says {name} {_cut(written[name])}, but it comes to {_cut(value)}"
    inner = ((name, key) for name, known in MADE_WITH.items() for key in written.get(name) or () if known)
    odd = [name for name in written if name not in found and name not in MADE_WITH]
    for name in [*odd, *(f"{name}.{key}" for name, key in inner if key not in MADE_WITH[name])]:
        yield f"{path} says {name}, which no such run writes"


def odd_federation(recorded: Recorded, ready: Stage) -> Iterator[str]:
    """Yields a complaint if federation.csv is not the federation that the config gives."""
    path = recorded.folder / "federation.csv"
    if not path.is_file():
        yield f"{shown(path)} is missing"
        return
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / path.name
        federation.write_csv(made, _counts(ready), ready.world.label_names)
        if made.read_bytes() != path.read_bytes():
            yield f"{shown(path)} is not the federation that the config makes"


def odd_client_accuracy(recorded: Recorded, ready: Stage, tolerance: float) -> Iterator[str]:
    """Yields a complaint if client_accuracy.csv is not how the last state's models score at the clients."""
    path, claim = recorded.folder / "client_accuracy.csv", recorded.last
    if not (recorded.ended and ready.exp.evaluation.personal):
        if path.is_file():
            yield f"{shown(path)} is there, but no such run writes it"
    elif claim is not None and claim.round == recorded.finished:
        made = [texts(line) for line in client_accuracy.measured(ready.exp, ready.world, ready.state(claim))]
        if what := differing_lines(path.name, read_whole(path, ("client",)), made, tolerance):
            yield f"{shown(path)}: {what}"


def same(written: Any, found: Any, tolerance: float) -> bool:
    """Whether two entries agree; numbers within the tolerance, relative and absolute."""
    if isinstance(written, Mapping) and isinstance(found, Mapping):
        return written.keys() == found.keys() and all(same(written[key], found[key], tolerance) for key in found)
    if isinstance(written, float) and isinstance(found, float):
        return math.isclose(written, found, rel_tol=max(tolerance, ROUNDING), abs_tol=tolerance)
    return type(written) is type(found) and written == found


def _end(recorded: Recorded, ready: Stage) -> State:
    """The last state, rebuilt from the tables as far as summary.json needs it."""
    last, world = recorded.lines[recorded.finished], ready.world
    claim = recorded.last
    host_s = claim.clocks["host_s"] if claim is not None and claim.round == recorded.finished else last["host_s"]
    return State(
        recorded.finished,
        (world.first,),
        {"stop": {"reason": reason_to_stop(recorded, ready.exp.stop)[1]}},
        float(last["sim_s"] or 0.0),
        float(host_s or 0.0),
        sum(int(line["participants"]) for line in recorded.lines.values()),
    )


def _counts(ready: Stage) -> np.ndarray:
    world = ready.world
    return class_counts(world.partition, world.labels, len(world.label_names))


def _cut(value: Any) -> str:
    return json.dumps(value)[:80]
