"""The whole of `fedexp verify`: reads a folder, checks its files, replays rounds, and reports differences."""

from collections.abc import Callable, Iterator
from pathlib import Path

from fedexp.config.compose import read_config
from fedexp.config.trust import NOBODY, Trust
from fedexp.core.errors import ConfigError, RunError
from fedexp.core.files import shown
from fedexp.verify import coverage, states, summary, tables
from fedexp.verify.choosing import Stretch, choose
from fedexp.verify.comparing import TOLERANCE, Difference, differing_clients, first_difference, other_surroundings
from fedexp.verify.recorded import Recorded, read
from fedexp.verify.replay import Replayed, Stage, stage

Say = Callable[[str], None]


def verify(folder: Path, count: int | None, seed: int, say: Say, trust: Trust = NOBODY) -> list[str]:
    """Complaints about a run folder, the earliest round first; none if everything agrees.

    Replays `count` rounds, or all of them if it is None.

    Raises:
        ConfigError: the folder holds no run that can be verified.
    """
    config = read_config(folder, trust)
    recorded = read(folder, config)
    stretches = choose(recorded.finished, recorded.starts, count or recorded.finished, seed)
    tell_plan(recorded, stretches, say)
    ready = stage(config, recorded.engine)
    tolerance = tell_measure(recorded, ready, say)
    found, others = checked(recorded, ready, tolerance, say, every=count is None)
    played: list[int] = []
    for stretch in stretches:
        for number, difference in replayed(recorded, ready, stretch, tolerance):
            say(f"round {number}  {'equal' if difference is None else 'DIFFERS'}")
            played.append(number)
            found += [] if difference is None else [difference]
    say(coverage.closing(recorded, ready, played, every=count is None, bit_by_bit=not tolerance))
    return [*dict.fromkeys(map(str, sorted(found, key=lambda each: each.round))), *others]


def tell_plan(recorded: Recorded, stretches: list[Stretch], say: Say) -> None:
    """Says which rounds will be computed."""
    cost = sum(stretch.last - stretch.start for stretch in stretches)
    say(f"{shown(recorded.folder)}: {recorded.finished} rounds, of which {cost} are computed again")
    for stretch in stretches:
        claim = recorded.starts.get(stretch.start)
        place = "the beginning" if claim is None else str(claim.path.relative_to(recorded.folder))
        say(f"from {place}: round{'s' * (len(stretch.asked) > 1)} {coverage.spans(stretch.asked)}")


def tell_measure(recorded: Recorded, ready: Stage, say: Say) -> float:
    """Says how results are compared, and returns the tolerance: 0 in the same environment as the run's."""
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
    """Complaints that need no replay: about rounds, and about the rest."""
    gaps = [*tables.gaps(recorded, ready.exp.rounds)]
    exact = ready.exp.evaluation.client_losses == "exact"
    found = [*gaps, *tables.undigested(recorded), *tables.attendance(recorded, exact=exact)]
    for difference in found:
        say(str(difference))
    for claim, difference in states.differing(recorded, ready, tolerance, every=every):
        holds = f"holds round {claim.round}" if difference is None else "DIFFERS"
        say(f"{claim.path.relative_to(recorded.folder)}  {holds}")
        found += [] if difference is None else [difference]
    others = [*states.misplaced(recorded), *summary.odd_federation(recorded, ready)]
    others += [] if gaps else summary.odd_summary(recorded, ready, tolerance)
    for complaint in others:
        say(complaint)
    return found, others


def replayed(
    recorded: Recorded, ready: Stage, stretch: Stretch, tolerance: float
) -> Iterator[tuple[int, Difference | None]]:
    """Yields the rounds of a stretch up to the first that differs: later ones differ because of it."""
    reached = stretch.start
    try:
        for played in ready.play(recorded.starts.get(stretch.start), stretch.last):
            reached = played.round
            found = compared(recorded, played, tolerance, ready.exp.evaluation.every)
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


def compared(recorded: Recorded, played: Replayed, tolerance: float, every: int) -> str:
    """How a replayed round differs from the record, in words; empty if it does not."""
    column = first_difference(recorded.lines[played.round], played.line, tolerance, blank=played.round % every != 0)
    told = []
    if column is not None:
        told.append(f"{column[0]} is {column[1] or 'empty'} in metrics.csv, {column[2]} now")
    written = recorded.attended.get(played.round, [])
    if played.round <= recorded.settled and (other := differing_clients(written, played.clients, tolerance)):
        told.append(other)
    made = None if tolerance else recorded.digests.get(played.round)
    if made is not None and made != played.digest:
        agrees = "" if told else " (metrics.csv agrees)"
        told.append(f"the models' digest is {made} in digests.csv, {played.digest} now{agrees}")
    return "; ".join(told)
