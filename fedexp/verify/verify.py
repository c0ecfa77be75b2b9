"""The whole of `fedexp verify`: reads a folder, plays some of its rounds again, and tells what differs."""

from collections.abc import Callable, Iterator
from pathlib import Path

from fedexp.config.compose import read_config
from fedexp.config.trust import NOBODY, Trust
from fedexp.core.errors import RunError
from fedexp.core.files import shown
from fedexp.verify.choosing import Stretch, choose
from fedexp.verify.comparing import TOLERANCE, Difference, first_difference, other_surroundings
from fedexp.verify.recorded import Recorded, read
from fedexp.verify.replay import Replayed, Stage, stage

Say = Callable[[str], None]


def verify(folder: Path, count: int, seed: int, say: Say, trust: Trust = NOBODY) -> list[str]:
    """Complaints about a run folder, the first differing round first; none where all is as it was written.

    Raises:
        ConfigError: the folder holds no run that could be verified.
    """
    config = read_config(folder, trust)
    recorded = read(folder, config)
    stretches = choose(recorded.finished, recorded.starts, count, seed)
    tell_plan(recorded, stretches, say)
    ready = stage(config, recorded.engine)
    tolerance = tell_measure(recorded, ready, say)
    found = [*differing_states(recorded, say)]
    for stretch in stretches:
        found += differing(recorded, ready, stretch, tolerance, say)
    for path in recorded.damaged:
        say(f"{path.relative_to(folder)}  DAMAGED")
    damaged = [f"{shown(path)} is damaged" for path in recorded.damaged]
    return [*map(str, sorted(found, key=lambda each: each.round)), *damaged]


def tell_plan(recorded: Recorded, stretches: list[Stretch], say: Say) -> None:
    """Says what will be computed before it is."""
    cost = sum(stretch.last - stretch.start for stretch in stretches)
    say(f"{shown(recorded.folder)}: {recorded.finished} rounds, of which {cost} are computed again")
    for stretch in stretches:
        claim = recorded.starts.get(stretch.start)
        place = "the beginning" if claim is None else str(claim.path.relative_to(recorded.folder))
        say(f"from {place}: round{'s' * (len(stretch.asked) > 1)} {', '.join(map(str, stretch.asked))}")


def tell_measure(recorded: Recorded, ready: Stage, say: Say) -> float:
    """Says how results are compared, and returns the tolerance: 0 where they were made as they are now."""
    now = ready.surroundings
    other = other_surroundings(recorded.surroundings, now)
    if other is None and not ready.steady:
        other = "a GPU may add in another order each time"
    if other is None:
        here = ", ".join(f"{name} {value}" for name, value in now.items())
        what = "digests and metrics" if recorded.digests else "metrics (the folder has no digests.csv)"
        say(f"{what} are compared bit by bit ({here})")
        return 0.0
    flips = 2 / len(ready.world.test)  # of examples near the border of two classes
    tolerance = max(TOLERANCE, flips)
    say(f"metrics are compared within {tolerance:.2g}, since bits may differ: {other}")
    return tolerance


def differing_states(recorded: Recorded, say: Say) -> Iterator[Difference]:
    """The saved states whose models are not those of their round."""
    for claim in recorded.claims:
        name, written = claim.path.relative_to(recorded.folder), recorded.digests.get(claim.round)
        if written is None:
            continue
        same = claim.digest == written
        say(f"{name}  {f'holds round {claim.round}' if same else 'DIFFERS'}")
        if not same:
            yield Difference(
                claim.round, f"the models in {name} have the digest {claim.digest}, digests.csv says {written}"
            )


def differing(recorded: Recorded, ready: Stage, stretch: Stretch, tolerance: float, say: Say) -> Iterator[Difference]:
    """The first difference in a stretch, if there is one: what follows it follows from it."""
    reached = stretch.start
    try:
        for played in ready.play(recorded.starts.get(stretch.start), stretch.last):
            reached = played.round
            found = compared(recorded, played, tolerance, ready.exp.evaluation.every)
            say(f"round {played.round}  {'equal' if found is None else 'DIFFERS'}")
            if found is not None:
                yield Difference(played.round, found)
                return
    except RunError as error:
        yield Difference(reached + 1, f"its replay ended: {error}")
        return
    if reached < stretch.last:
        yield Difference(reached + 1, "the replay stopped before it")


def compared(recorded: Recorded, played: Replayed, tolerance: float, every: int) -> str | None:
    """In words what is not as it was written, if anything is."""
    written = recorded.lines.get(played.round)
    if written is None:
        return "it has no line in metrics.csv"
    made = None if tolerance else recorded.digests.get(played.round)
    column = first_difference(written, played.line, tolerance, blank=played.round % every != 0)
    shown_column = "" if column is None else f"{column[0]} is {column[1] or 'empty'} in metrics.csv, {column[2]} now"
    if made is None or made == played.digest:
        return shown_column or None
    models = f"the models' digest is {made} in digests.csv, {played.digest} now"
    return f"{shown_column}; {models}" if shown_column else f"{models} (metrics.csv agrees)"
