"""Checks the saved states against their rounds: numbers, models, and the models' scores."""

import math
from collections.abc import Iterator
from typing import Any

import torch

from fedexp.core.files import shown
from fedexp.core.values import State
from fedexp.run import checkpoint, digests
from fedexp.run.tables import TIMINGS
from fedexp.verify.comparing import Difference, alike
from fedexp.verify.recorded import Claim, Recorded
from fedexp.verify.replay import Stage

OPTIONAL = ("selector.variance", "selector.columns.standard_error", "selector.columns.sure")  # older states lack them


def misplaced(recorded: Recorded) -> Iterator[str]:
    """Yields complaints about a missing state, damaged states, and states of rounds that are not in the tables."""
    if recorded.ended and not (recorded.folder / checkpoint.NAME).exists():
        yield f"{shown(recorded.folder / checkpoint.NAME)} is missing"
    for claim in recorded.claims:
        last = recorded.ended and claim is recorded.last
        if claim.round > recorded.newest or (last and claim.round < recorded.newest):
            yield f"{shown(claim.path)} is of round {claim.round}, but metrics.csv ends with {recorded.newest}"
    for path in recorded.damaged:
        yield f"{shown(path)} is damaged"


def differing(
    recorded: Recorded, ready: Stage, tolerance: float, *, every: bool
) -> Iterator[tuple[Claim, Difference | None]]:
    """Yields every state of a recorded round with what differs in it; None if nothing does.

    The models of states in `states/` are scored only with `every`.
    """
    for claim in recorded.claims:
        if 0 < claim.round <= recorded.finished:
            what = disagreement(recorded, claim)
            if not what and (every or claim.path.parent == recorded.folder):
                what = scored(recorded, claim, ready, tolerance)
            yield claim, Difference(claim.round, what) if what else None


def disagreement(recorded: Recorded, claim: Claim) -> str:
    """How a state differs from the tables, in words; empty if it does not."""
    name, line = claim.path.relative_to(recorded.folder), recorded.lines[claim.round]
    written = recorded.digests.get(claim.round)
    if written is not None and written != claim.digest:
        return f"the models in {name} have the digest {claim.digest}, {digests.NAME} says {written}"
    for clock, told in claim.clocks.items():
        if line[clock] and line[clock] != told:
            return f"{clock} is {told} in {name}, metrics.csv says {line[clock]}"
    updates = sum(int(line["participants"]) for number, line in recorded.lines.items() if number <= claim.round)
    if claim.updates != updates:
        return f"updates is {claim.updates} in {name}, metrics.csv comes to {updates}"
    return ""


def differing_memory(recorded: Recorded, ready: Stage, after: State, tolerance: float) -> str:
    """How saved states of a round differ from the replayed one in what no table shows; empty if they do not."""
    for claim in recorded.claims:
        if claim.round != after.round:
            continue
        state, name = ready.state(claim), claim.path.relative_to(recorded.folder)
        saved, now = (dict(leaves({"sim_s": one.sim_s, **one.memory})) for one in (state, after))
        for place in dict.fromkeys([*saved, *(place for place in now if place not in OPTIONAL)]):
            if not (place in saved and place in now and equal(saved[place], now[place], tolerance)):
                return f"{place} in the memory of {name} is not what it is now"
    return ""


def leaves(node: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the values of a memory with their dotted keys, without timings."""
    if isinstance(node, dict):
        inner = [(str(name), child) for name, child in node.items()]
    elif isinstance(node, tuple | list):
        inner = [(str(number), child) for number, child in enumerate(node)]
    elif place.replace(".columns.", ".") not in TIMINGS:
        yield place, node
        return
    else:
        return
    for name, child in inner:
        yield from leaves(child, f"{place}.{name}" if place else name)


def equal(saved: Any, now: Any, tolerance: float) -> bool:
    """Whether two values of a memory agree; numbers within the tolerance, relative and absolute."""
    if isinstance(saved, torch.Tensor) and isinstance(now, torch.Tensor):
        now = now.to(saved.device)
        if saved.shape != now.shape or saved.dtype != now.dtype or not saved.is_floating_point():
            return torch.equal(saved, now)
        return torch.allclose(saved, now, tolerance, tolerance, equal_nan=True)
    if isinstance(saved, float) and isinstance(now, float):
        return math.isclose(saved, now, rel_tol=tolerance, abs_tol=tolerance) or (saved != saved and now != now)
    return type(saved) is type(now) and saved == now


def scored(recorded: Recorded, claim: Claim, ready: Stage, tolerance: float) -> str:
    """How the scores of a state's models differ from metrics.csv, in words; empty if they do not."""
    line = recorded.lines[claim.round]
    for column, found in ready.scores(claim).items():
        if line.get(column) and not alike(line[column], found, tolerance):
            name = claim.path.relative_to(recorded.folder)
            return f"{column} is {line[column]} in metrics.csv, but the models in {name} score {found}"
    return ""
