"""Checks the saved states against their rounds: numbers, models, and the models' scores."""

from collections.abc import Iterator
from typing import Any

from fedexp.core.values import State
from fedexp.files.atomic import display_path
from fedexp.run import digests
from fedexp.run.state import checkpoint
from fedexp.run.state.inputs import changed_inputs, digest_inputs
from fedexp.run.tables import TIMINGS
from fedexp.verify.comparison import Difference, cells_agree, values_agree
from fedexp.verify.record import RunRecord, SavedState
from fedexp.verify.rerun import Rerun


def misplaced_states(record: RunRecord) -> Iterator[str]:
    """Yields complaints about a missing state, damaged states, and states of rounds that are not in the tables."""
    if record.has_ended and not (record.folder / checkpoint.NAME).exists():
        yield f"{display_path(record.folder / checkpoint.NAME)} is missing"
    for saved_state in record.saved_states:
        last = record.has_ended and saved_state is record.last
        if saved_state.round > record.newest_round or (last and saved_state.round < record.newest_round):
            yield (
                f"{display_path(saved_state.path)} is of round {saved_state.round}, but metrics.csv ends with "
                f"{record.newest_round}"
            )
    for path in record.damaged:
        yield f"{display_path(path)} is damaged"


def changed_inputs_of_states(record: RunRecord, rerun: Rerun) -> Iterator[str]:
    """Yields a complaint for each state of a run that read other data, clients or files than are there now."""
    now = digest_inputs(rerun.world)
    for saved_state in record.saved_states:
        if changed := changed_inputs(saved_state.inputs, now, rerun.exp):
            yield f"{display_path(saved_state.path)}: {' and '.join(changed)} changed after the run began"


def differing_states(
    record: RunRecord, rerun: Rerun, tolerance: float, *, every: bool
) -> Iterator[tuple[SavedState, Difference | None]]:
    """Yields every state of a recorded round with what differs in it; None if nothing does.

    The models of states in `states/` are scored only with `every`.
    """
    for saved_state in record.saved_states:
        if 0 < saved_state.round <= record.finished_rounds:
            problem = table_difference(record, saved_state)
            if not problem and (every or saved_state.path.parent == record.folder):
                problem = score_difference(record, saved_state, rerun, tolerance)
            yield saved_state, Difference(saved_state.round, problem) if problem else None


def table_difference(record: RunRecord, saved_state: SavedState) -> str:
    """How a state differs from the tables, in words; empty if it does not."""
    name, line = saved_state.path.relative_to(record.folder), record.lines[saved_state.round]
    written = record.chains.lines.get(saved_state.round, {}).get("digest")
    if written not in (None, saved_state.digest):
        return f"the models in {name} have the digest {saved_state.digest}, {digests.NAME} says {written}"
    for clock, saved_value in saved_state.clocks.items():
        if line[clock] and line[clock] != saved_value:
            return f"{clock} is {saved_value} in {name}, metrics.csv says {line[clock]}"
    updates = sum(int(line["participants"]) for number, line in record.lines.items() if number <= saved_state.round)
    if saved_state.updates != updates:
        return f"updates is {saved_state.updates} in {name}, metrics.csv comes to {updates}"
    return ""


def memory_difference(record: RunRecord, rerun: Rerun, recomputed_state: State, tolerance: float) -> str:
    """How saved states of a round differ from the recomputed one in what no table shows; empty if they do not."""
    for saved_state in record.saved_states:
        if saved_state.round != recomputed_state.round:
            continue
        state, name = rerun.state(saved_state), saved_state.path.relative_to(record.folder)
        saved, now = (
            dict(leaves({"sim_s": source_state.sim_s, **source_state.memory}))
            for source_state in (state, recomputed_state)
        )
        for key in dict.fromkeys([*saved, *now]):
            if not (key in saved and key in now and values_agree(saved[key], now[key], tolerance)):
                return f"{key} in the memory of {name} is not what it is now"
    return ""


def leaves(node: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the values of a memory with their dotted keys, without timings."""
    if isinstance(node, dict):
        inner = [(str(name), child) for name, child in node.items()]
    elif isinstance(node, tuple | list):
        inner = [(str(number), child) for number, child in enumerate(node)]
    elif key.replace(".columns.", ".") not in TIMINGS:
        yield key, node
        return
    else:
        return
    for name, child in inner:
        yield from leaves(child, f"{key}.{name}" if key else name)


def score_difference(record: RunRecord, saved_state: SavedState, rerun: Rerun, tolerance: float) -> str:
    """How the scores of a state's models differ from metrics.csv, in words; empty if they do not."""
    line = record.lines[saved_state.round]
    for column, score in rerun.scores(saved_state).items():
        if line.get(column) and not cells_agree(line[column], score, tolerance):
            name = saved_state.path.relative_to(record.folder)
            return f"{column} is {line[column]} in metrics.csv, but the models in {name} score {score}"
    return ""
