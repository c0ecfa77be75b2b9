"""Checks whether the tables of a folder are complete and agree with each other, before they are used."""

import math
from collections.abc import Iterator
from typing import Any

from fedexp.core.values import Memory
from fedexp.files.atomic import display_path
from fedexp.files.run_tables import Line
from fedexp.parts.stop.contract import Stop
from fedexp.run import digests
from fedexp.verify.comparison import Difference, differing_columns
from fedexp.verify.record import RunRecord

ROUNDING = 1e-9  # for a mean computed again, perhaps with another version of numpy


def gaps(record: RunRecord, rounds: int, stop: Stop) -> Iterator[Difference]:
    """Yields rounds missing from metrics.csv, and lines out of order; only a stop rule ends a run before `rounds`."""
    numbers, last = [int(line["round"]) for line in record.rows], record.finished_rounds
    ends, _ = reason_to_stop(record, stop)
    if last < len(numbers):
        missing = last + 1 not in numbers
        yield Difference(last + 1, "it has no line in metrics.csv" if missing else "its line is not in its place")
    elif record.has_ended and last < rounds and ends != last:
        yield Difference(last + 1, f"metrics.csv ends before it, though the run has {rounds} rounds and did not stop")
    elif last > min(rounds, ends or rounds):
        why = f"the run has {rounds} rounds" if last > rounds else f"the run had to stop after round {ends}"
        yield Difference(min(rounds, ends or rounds) + 1, why)


def reason_to_stop(record: RunRecord, stop: Stop) -> tuple[int, str | None]:
    """The round after which the rule ends the run, and why, judged from metrics.csv; (0, None) if it does not."""
    memory: Memory = {}
    for number, line in record.lines.items():
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


def clustering_complaints(record: RunRecord, *, divides: bool) -> Iterator[str]:
    """Yields a complaint if clusters.csv is missing, belongs to another run, or has rounds that metrics.csv lacks."""
    path = record.folder / "clusters.csv"
    if path.is_file() != divides:
        yield f"{display_path(path)} {'is missing' if divides else 'is there, but no such run writes it'}"
    elif odd := [line for line in record.clusters if not 0 <= int(line["round"]) <= record.newest_round]:
        yield f"{display_path(path)} has a line of round {odd[0]['round']}, which metrics.csv does not have"


def digest_differences(record: RunRecord) -> Iterator[Difference]:
    """Yields rounds that digests.csv lacks, and rounds in it that do not exist."""
    digest_rounds = [int(line["round"]) for line in record.digest_lines]
    if record.digest_lines and (problem := differing_columns(digests.NAME, record.digest_lines[0], digests.COLUMNS)):
        yield Difference(digest_rounds[0], problem)
    missing = [number for number in range(1, record.required_rounds + 1) if number not in record.digests]
    if missing:
        suffix = f", nor have {len(missing) - 1} others" if len(missing) > 1 else ""
        yield Difference(missing[0], f"it has no line in digests.csv{suffix}")
    if digest_rounds != sorted(set(digest_rounds)):
        yield Difference(digest_rounds[0], "the lines of digests.csv are not in the order of the rounds")
    if beyond := [number for number in digest_rounds if number > record.newest_round]:
        yield Difference(beyond[0], "it has a line in digests.csv, but none in metrics.csv")


def client_differences(record: RunRecord, *, exact: bool) -> Iterator[Difference]:
    """Yields rounds whose clients in clients.csv do not add up to their line in metrics.csv.

    With `exact` losses clients.csv does not have the running ones, so train_loss is not compared.
    """
    clients_by_round = record.clients_by_round
    if list(clients_by_round) != sorted(clients_by_round):
        yield Difference(next(iter(clients_by_round)), "the lines of clients.csv are not in the order of the rounds")
    for number in range(1, record.required_rounds + 1):
        if problem := client_difference(record.lines[number], clients_by_round.get(number, []), exact=exact):
            yield Difference(number, problem)
    if odd := [number for number in clients_by_round if not 0 < number <= record.newest_round]:
        yield Difference(odd[0], "it has lines in clients.csv, but none in metrics.csv")


def client_difference(line: Line, clients: list[Line], *, exact: bool) -> str:
    """How the clients of a round differ from its line in metrics.csv; empty if they agree."""
    client_ids = [int(client_line["client"]) for client_line in clients if int(client_line["client"]) >= 0]
    if len(set(client_ids)) < len(client_ids):
        return "a client comes twice in clients.csv"
    for name, total in (
        ("participants", len(client_ids)),
        ("examples", sum(int(client_line["examples"]) for client_line in clients)),
    ):
        if int(line[name]) != total:
            return f"clients.csv comes to {total} {name}, metrics.csv says {line[name]}"
    if exact:
        return ""
    losses_and_counts = [
        (float(client_line["loss_after"]), int(client_line["examples"]))
        for client_line in clients
        if client_line["loss_after"]
    ]
    examples = sum(count for _, count in losses_and_counts)
    mean = sum(loss * count for loss, count in losses_and_counts) / examples if examples else math.nan
    written = float(line["train_loss"] or "nan")
    if math.isclose(mean, written, rel_tol=ROUNDING) or (math.isnan(mean) and math.isnan(written)):
        return ""
    return f"clients.csv comes to a train_loss of {mean!r}, metrics.csv says {line['train_loss'] or 'nothing'}"
