"""Whether the tables of a folder are whole and agree with each other, before any of them is believed."""

import math
from collections.abc import Iterator

from fedexp.core.csv_table import Line
from fedexp.verify.comparing import Difference
from fedexp.verify.recorded import Recorded

ROUNDING = 1e-9  # a mean that is taken again, perhaps with another version of numpy


def gaps(recorded: Recorded, rounds: int) -> Iterator[Difference]:
    """What is missing from metrics.csv, or comes twice; a run of so many rounds ends before only by its stop rule."""
    numbers, last = [int(line["round"]) for line in recorded.rows], recorded.finished
    if last < len(numbers):
        missing = last + 1 not in numbers
        yield Difference(last + 1, "it has no line in metrics.csv" if missing else "its line is not in its place")
    elif recorded.ended and last < rounds and not (recorded.summary or {}).get("stopped"):
        yield Difference(last + 1, f"metrics.csv ends before it, though the run has {rounds} rounds and did not stop")
    elif last > rounds:
        yield Difference(rounds + 1, f"the run has {rounds} rounds")


def undigested(recorded: Recorded) -> Iterator[Difference]:
    """The rounds that digests.csv does not tell of, and those that there are not."""
    told = [int(line["round"]) for line in recorded.made]
    missing = [number for number in range(1, recorded.settled + 1) if number not in recorded.digests]
    if missing:
        others = f", nor have {len(missing) - 1} others" if len(missing) > 1 else ""
        yield Difference(missing[0], f"it has no line in digests.csv{others}")
    if told != sorted(set(told)):
        yield Difference(told[0], "the lines of digests.csv are not in the order of the rounds")
    if beyond := [number for number in told if number > recorded.newest]:
        yield Difference(beyond[0], "it has a line in digests.csv, but none in metrics.csv")


def attendance(recorded: Recorded, *, exact: bool) -> Iterator[Difference]:
    """The rounds whose clients in clients.csv are not those that metrics.csv sums up.

    With `exact` losses the mean of the running ones is not in the table.
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
    """What the clients of a round and its line of metrics.csv say differently; empty where they agree."""
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
