"""Verifies a run folder: reads it, checks its files, replays rounds, and reports differences."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fedexp.config.compose import read_config
from fedexp.config.trust import NOBODY, Trust
from fedexp.core.errors import ConfigError, RunError
from fedexp.core.files import shown
from fedexp.verify import coverage, states, summary, tables, words
from fedexp.verify.choosing import Stretch, choose, computed, fitting
from fedexp.verify.comparing import (
    TOLERANCE,
    Difference,
    differing_columns,
    differing_lines,
    first_difference,
    other_surroundings,
)
from fedexp.verify.recorded import Recorded, read
from fedexp.verify.replay import Replayed, Stage, stage

Say = Callable[[str], None]
PATIENCE_S = 60.0  # of replays, if nobody says how many
LEAST = 3


@dataclass(frozen=True)
class ReplayBudget:
    """How much is replayed: `rounds` rounds, `every` round, or those that fit into `seconds`; the seed draws them."""

    seed: int
    rounds: int | None = None
    every: bool = False
    seconds: float = PATIENCE_S


@dataclass(frozen=True)
class VerifyResult:
    """The complaints, and whether bits were compared (`exact`), or only values within rounding."""

    complaints: list[str]
    exact: bool


def verify(folder: Path, budget: ReplayBudget, say: Say, trust: Trust = NOBODY) -> VerifyResult:
    """Complaints about a run folder, the earliest round first; none if everything agrees.

    Raises:
        ConfigError: the folder holds no run that can be verified.
    """
    config = read_config(folder, trust)
    recorded = read(folder, config)
    ready = stage(config, recorded.engine)
    count = recorded.finished if budget.every else budget.rounds or affordable(recorded, ready, budget)
    stretches = choose(recorded.finished, recorded.starts, count, budget.seed)
    tell_plan(recorded, stretches, say)
    if 1 < count < recorded.finished:
        say(f"drawn by --rounds {count} --seed {budget.seed}")
    tolerance = tell_measure(recorded, ready, say)
    every = count >= recorded.finished
    found, others = checked(recorded, ready, tolerance, say, every=every)
    played: list[int] = []
    for stretch in stretches:
        for number, difference in replayed(recorded, ready, stretch, tolerance):
            say(f"round {number}  {'equal' if difference is None else 'DIFFERS'}")
            played.append(number)
            found += [] if difference is None else [difference]
    say(coverage.closing(recorded, ready, played, every=every, bit_by_bit=not tolerance))
    complaints = [*dict.fromkeys(map(str, sorted(found, key=lambda each: each.round))), *others]
    return VerifyResult(complaints, exact=not tolerance)


def affordable(recorded: Recorded, ready: Stage, budget: ReplayBudget) -> int:
    """How many rounds fit into the seconds, measured by round 1: twice if it was fast, since the first time is slower.

    At least three, so that chance has a say. The clock says how much is checked, and nothing else.
    """
    if recorded.finished <= LEAST:
        return recorded.finished
    spent = budget.seconds
    for _ in range(2):
        begun = time.perf_counter()
        try:
            for _ in ready.play(None, 1):
                pass
        except RunError:  # the replay proper says so
            return LEAST
        spent = time.perf_counter() - begun
        if spent > budget.seconds / 10:
            break
    return max(LEAST, fitting(recorded.finished, recorded.starts, budget.seconds / spent, budget.seed))


def tell_plan(recorded: Recorded, stretches: list[Stretch], say: Say) -> None:
    """Prints which rounds will be computed."""
    say(f"{shown(recorded.folder)}: {recorded.finished} rounds, of which {computed(stretches)} are computed again")
    for stretch in stretches:
        claim = recorded.starts.get(stretch.start)
        place = "the beginning" if claim is None else str(claim.path.relative_to(recorded.folder))
        say(f"from {place}: round{'s' * (len(stretch.asked) > 1)} {coverage.spans(stretch.asked)}")


def tell_measure(recorded: Recorded, ready: Stage, say: Say) -> float:
    """Prints how results are compared, and returns the tolerance: 0 in the environment of the run."""
    now = ready.surroundings
    other = other_surroundings(recorded.surroundings, now)
    if other is None and not ready.steady:
        other = "a GPU may add in another order each time"
    if other is None:
        here = ", ".join(f"{name} {value}" for name, value in now.items())
        what = "digests and metrics" if recorded.digests else "metrics (the folder has no digests.csv)"
        say(f"{what} are compared bit by bit ({here})")
        return 0.0
    flips = 2 / len(ready.world.test)  # share of two examples, near the border between classes
    tolerance = max(TOLERANCE, flips)
    say(f"metrics are compared within {tolerance:.2g}, since bits may differ: {other}")
    return tolerance


def checked(
    recorded: Recorded, ready: Stage, tolerance: float, say: Say, *, every: bool
) -> tuple[list[Difference], list[str]]:
    """Checks the files without replaying; returns differences of rounds, and all other complaints."""
    gaps = [*tables.gaps(recorded, ready.exp.rounds, ready.exp.stop)]
    exact = ready.exp.evaluation.client_losses == "exact"
    found = [*gaps, *tables.undigested(recorded), *tables.attendance(recorded, exact=exact)]
    for difference in found:
        say(str(difference))
    for claim, difference in states.differing(recorded, ready, tolerance, every=every):
        holds = f"holds round {claim.round}" if difference is None else "DIFFERS"
        say(f"{claim.path.relative_to(recorded.folder)}  {holds}")
        found += [] if difference is None else [difference]
    others = [*words.odd_words(recorded.folder), *states.misplaced(recorded), *summary.odd_federation(recorded, ready)]
    others += tables.clustering(recorded, divides=ready.exp.clustering.divides)
    others += summary.odd_client_accuracy(recorded, ready, tolerance)
    others += [] if gaps else summary.odd_summary(recorded, ready, tolerance)
    for complaint in others:
        say(complaint)
    return found, others


def replayed(
    recorded: Recorded, ready: Stage, stretch: Stretch, tolerance: float
) -> Iterator[tuple[int, Difference | None]]:
    """Yields the rounds of a segment up to the first that differs: later ones would differ because of it."""
    reached = stretch.start
    try:
        for played in ready.play(recorded.starts.get(stretch.start), stretch.last):
            reached = played.round
            found = compared(recorded, ready, played, tolerance)
            yield reached, Difference(reached, found) if found else None
            if found:
                return
    except RunError as error:
        yield reached + 1, Difference(reached + 1, f"its replay ended: {error}")
        return
    except (ConfigError, OSError):
        raise
    except Exception as error:  # a part may not be able to read its memory
        if not stretch.start:
            raise
        told = f"cannot go on from the state after round {reached}: {type(error).__name__}: {error}"
        yield reached + 1, Difference(reached + 1, told)
        return
    if reached < stretch.last:
        yield reached + 1, Difference(reached + 1, "the replay stopped before it")


def compared(recorded: Recorded, ready: Stage, played: Replayed, tolerance: float) -> str:
    """How a replayed round differs from the record, in words; empty if it does not."""
    number, line = played.round, recorded.lines[played.round]
    column = first_difference(line, played.line, tolerance, blank=number % ready.exp.evaluation.every != 0)
    told = [differing_columns("metrics.csv", line, played.line) if number == 1 else ""]
    if column is not None:
        told.append(f"{column[0]} is {column[1] or 'empty'} in metrics.csv, {column[2] or 'empty'} now")
    if number <= recorded.settled:
        events = [one for one in recorded.clusters if max(1, int(one["round"])) == number]
        told.append(differing_lines("clients.csv", recorded.attended.get(number, []), played.clients, tolerance))
        told.append(differing_lines("clusters.csv", events, played.clusters, tolerance))
    made = None if tolerance else recorded.digests.get(number)
    if made is not None and made != played.digest:
        agrees = "" if any(told) else " (metrics.csv agrees)"
        told.append(f"the models' digest is {made} in digests.csv, {played.digest} now{agrees}")
    elif not any(told):
        told.append(states.differing_memory(recorded, ready, played.state, tolerance))
    return "; ".join(filter(None, told))
