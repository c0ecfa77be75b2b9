"""Checks whether the tables of a folder are complete and agree with each other, before they are used."""

import math
from collections.abc import Iterator
from typing import Any

from fedexp.core.csv_table import Line
from fedexp.core.files import shown
from fedexp.core.values import Memory
from fedexp.parts.stop.contract import Stop
from fedexp.run import digests
from fedexp.verify.comparing import Difference, differing_columns
from fedexp.verify.recorded import Recorded

ROUNDING = 1e-9  # for a mean computed again, perhaps with another version of numpy


def gaps(recorded: Recorded, rounds: int, stop: Stop) -> Iterator[Difference]:
    """Yields rounds missing from metrics.csv, and lines out of order; only a stop rule ends a run before `rounds`."""
    numbers, last = [int(line["round"]) for line in recorded.rows], recorded.finished
    ends, _ = reason_to_stop(recorded, stop)
    if last < len(numbers):
        missing = last + 1 not in numbers
        yield Difference(last + 1, "it has no line in metrics.csv" if missing else "its line is not in its place")
    elif recorded.ended and last < rounds and ends != last:
        yield Difference(last + 1, f"metrics.csv ends before it, though the run has {rounds} rounds and did not stop")
    elif last > min(rounds, ends or rounds):
        why = f"the run has {rounds} rounds" if last > rounds else f"the run had to stop after round {ends}"
        yield Difference(min(rounds, ends or rounds) + 1, why)


def reason_to_stop(recorded: Recorded, stop: Stop) -> tuple[int, str | None]:
    """The round after which the rule ends the run, and why, judged from metrics.csv; (0, None) if it does not."""
    memory: Memory = {}
    for number, line in recorded.lines.items():
        try:
            reason, memory = stop.judge({name: _value(text) for name, text in line.items()}, memory)
        except (LookupError, AssertionError, TypeError):  # a column that it needs is not there, which is told elsewhere
            return 0, None
        memory = {**memory, "reason": reason}
        if reason:
            return number, reason
    return 0, None


def _value(text: str) -> Any:
    """The value of a cell; nan where it is empty."""
    if text.isdecimal():
        return int(text)
    try:
        return float(text or "nan")
    except ValueError:
        return text


def clustering(recorded: Recorded, *, divides: bool) -> Iterator[str]:
    """Yields a complaint if clusters.csv is missing, belongs to another run, or has rounds that metrics.csv lacks."""
    path = recorded.folder / "clusters.csv"
    if path.is_file() != divides:
        yield f"{shown(path)} {'is missing' if divides else 'is there, but no such run writes it'}"
    elif odd := [line for line in recorded.clusters if not 0 <= int(line["round"]) <= recorded.newest]:
        yield f"{shown(path)} has a line of round {odd[0]['round']}, which metrics.csv does not have"


def undigested(recorded: Recorded) -> Iterator[Difference]:
    """Yields rounds that digests.csv lacks, and rounds in it that do not exist."""
    told = [int(line["round"]) for line in recorded.made]
    if recorded.made and (what := differing_columns(digests.NAME, recorded.made[0], digests.COLUMNS)):
        yield Difference(told[0], what)
    missing = [number for number in range(1, recorded.settled + 1) if number not in recorded.digests]
    if missing:
        others = f", nor have {len(missing) - 1} others" if len(missing) > 1 else ""
        yield Difference(missing[0], f"it has no line in digests.csv{others}")
    if told != sorted(set(told)):
        yield Difference(told[0], "the lines of digests.csv are not in the order of the rounds")
    if beyond := [number for number in told if number > recorded.newest]:
        yield Difference(beyond[0], "it has a line in digests.csv, but none in metrics.csv")


def attendance(recorded: Recorded, *, exact: bool) -> Iterator[Difference]:
    """Yields rounds whose clients in clients.csv do not add up to their line in metrics.csv.

    With `exact` losses clients.csv does not have the running ones, so train_loss is not compared.
    """
    came = recorded.attended
    if list(came) != sorted(came):
        yield Difference(next(iter(came)), "the lines of clients.csv are not in the order of the rounds")
    for number in range(1, recorded.settled + 1):
        if what := disagreement(recorded.lines[number], came.get(number, []), exact=exact):
            yield Difference(number, what)
    if odd := [number for number in came if not 0 < number <= recorded.newest]:
        yield Difference(odd[0], "it has lines in clients.csv, but none in metrics.csv")


def disagreement(line: Line, clients: list[Line], *, exact: bool) -> str:
    """How the clients of a round differ from its line in metrics.csv; empty if they agree."""
    own = [int(one["client"]) for one in clients if int(one["client"]) >= 0]
    if len(set(own)) < len(own):
        return "a client comes twice in clients.csv"
    for name, found in (("participants", len(own)), ("examples", sum(int(one["examples"]) for one in clients))):
        if int(line[name]) != found:
            return f"clients.csv comes to {found} {name}, metrics.csv says {line[name]}"
    if exact:
        return ""
    known = [(float(one["loss_after"]), int(one["examples"])) for one in clients if one["loss_after"]]
    examples = sum(count for _, count in known)
    mean = sum(loss * count for loss, count in known) / examples if examples else math.nan
    written = float(line["train_loss"] or "nan")
    if math.isclose(mean, written, rel_tol=ROUNDING) or (math.isnan(mean) and math.isnan(written)):
        return ""
    return f"clients.csv comes to a train_loss of {mean!r}, metrics.csv says {line['train_loss'] or 'nothing'}"
