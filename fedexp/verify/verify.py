"""Verifies a run folder: reads it, checks its files, computes rounds again, and reports differences."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fedexp.config.saved_config import read_config
from fedexp.config.trust import NO_TRUST, Trust
from fedexp.core.errors import ConfigError, RunError
from fedexp.files.atomic import display_path
from fedexp.run.environment import changed_surroundings
from fedexp.verify import coverage, states, summary, tables, words
from fedexp.verify.comparison import (
    TOLERANCE,
    Difference,
    differing_columns,
    differing_lines,
    line_difference,
    name_rounds,
)
from fedexp.verify.confusion_matrix import confusion_complaints
from fedexp.verify.presence import presence_complaints
from fedexp.verify.record import RunRecord, read
from fedexp.verify.rerun import RecomputedRound, Rerun, build_rerun
from fedexp.verify.sampling import Segment, choose, count_computed, largest_count

Say = Callable[[str], None]
PATIENCE_S = 60.0  # in which rounds are computed again, if nobody says how many
MIN_ROUNDS = 3


@dataclass(frozen=True)
class RecomputeBudget:
    """How much is recomputed: `rounds` rounds, `every` round, or those that fit into `seconds`; the seed draws them."""

    seed: int
    rounds: int | None = None
    every: bool = False
    seconds: float = PATIENCE_S


@dataclass(frozen=True)
class VerifyResult:
    """The complaints, and whether bits were compared (`exact`), or only values within rounding."""

    complaints: list[str]
    exact: bool


def verify(folder: Path, budget: RecomputeBudget, say: Say, trust: Trust = NO_TRUST) -> VerifyResult:
    """Complaints about a run folder, the earliest round first; none if everything agrees.

    Raises:
        ConfigError: the folder holds no run that can be verified.
    """
    config = read_config(folder, trust)
    record = read(folder, config)
    rerun = build_rerun(config, record.engine, folder)
    count = record.finished_rounds if budget.every else budget.rounds or affordable_rounds(record, rerun, budget)
    segments = choose(record.finished_rounds, record.starts, count, budget.seed)
    tell_plan(record, segments, rerun.exp.rounds, say)
    if 1 < count < record.finished_rounds:
        say(f"drawn by --rounds {count} --seed {budget.seed}")
    tolerance = tell_tolerance(record, rerun, say)
    every = count >= record.finished_rounds
    misfits = [*tables.chain_differences(record, rerun.exp)]
    for misfit in misfits:
        say(str(misfit))
    differences, file_complaints = check_files(record, rerun, tolerance, say, every=every)
    played: dict[int, Difference | None] = {}
    for segment in segments:
        for number, difference in recompute_segment(record, rerun, segment, tolerance):
            say(f"round {number}  {'equal' if difference is None else 'DIFFERS'}")
            played[number] = difference
    say(coverage.describe_coverage(record, rerun, [*played], every=every, bit_by_bit=not tolerance))
    differences += filter(None, played.values())
    explained = {difference.round for difference in differences}
    differences += [misfit for misfit in misfits if misfit.round not in explained]
    complaints = [*dict.fromkeys(map(str, sorted(differences, key=lambda item: item.round))), *file_complaints]
    return VerifyResult(complaints, exact=not tolerance)


def affordable_rounds(record: RunRecord, rerun: Rerun, budget: RecomputeBudget) -> int:
    """How many rounds fit into the seconds, measured by round 1: twice if it was fast, since the first time is slower.

    At least three, so that chance has a say. The clock says how much is checked, and nothing else.
    """
    if record.finished_rounds <= MIN_ROUNDS:
        return record.finished_rounds
    spent = budget.seconds
    for _ in range(2):
        start_time = time.perf_counter()
        try:
            for _ in rerun.recompute_rounds(None, 1):
                pass
        except RunError:  # what checks the rounds says so
            return MIN_ROUNDS
        spent = time.perf_counter() - start_time
        if spent > budget.seconds / 10:
            break
    return max(MIN_ROUNDS, largest_count(record.finished_rounds, record.starts, budget.seconds / spent, budget.seed))


def tell_plan(record: RunRecord, segments: list[Segment], planned: int, say: Say) -> None:
    """Prints which rounds will be computed."""
    ending = "" if record.has_ended else f" of at most {planned}, not finished"
    say(
        f"{display_path(record.folder)}: {record.finished_rounds} rounds{ending}, of which "
        f"{count_computed(segments)} are computed again"
    )
    for segment in segments:
        saved_state = record.starts.get(segment.start)
        origin = "the beginning" if saved_state is None else str(saved_state.path.relative_to(record.folder))
        say(f"from {origin}: {name_rounds(segment.sample)}")


def tell_tolerance(record: RunRecord, rerun: Rerun, say: Say) -> float:
    """Prints how results are compared, and returns the tolerance: 0 in the environment of the run."""
    now = rerun.surroundings
    reason = changed_surroundings(record.surroundings, now)
    if reason is None and not rerun.is_deterministic:
        reason = "a GPU may add in another order each time"
    if reason is None:
        here = ", ".join(f"{name} {value}" for name, value in now.items())
        subject = "digests and metrics" if record.chains.lines else "metrics (the folder has no digests.csv)"
        say(f"{subject} are compared bit by bit ({here})")
        return 0.0
    flips = 2 / len(rerun.world.test)  # share of two examples, near the border between classes
    tolerance = max(TOLERANCE, flips)
    say(f"metrics are compared within {tolerance:.2g}, since bits may differ: {reason}")
    return tolerance


def check_files(
    record: RunRecord, rerun: Rerun, tolerance: float, say: Say, *, every: bool
) -> tuple[list[Difference], list[str]]:
    """Checks the files without computing rounds again; returns differences of rounds, and all other complaints."""
    gaps = [*tables.gaps(record, rerun.exp.rounds, rerun.exp.stop)]
    differences = [*gaps]
    for difference in gaps:
        say(str(difference))
    for saved_state, difference in states.differing_states(record, rerun, tolerance, every=every):
        holds = f"holds round {saved_state.round}" if difference is None else "DIFFERS"
        say(f"{saved_state.path.relative_to(record.folder)}  {holds}")
        differences += [] if difference is None else [difference]
    complaints = [
        *words.override_complaints(record.folder),
        *states.misplaced_states(record),
        *states.changed_inputs_of_states(record, rerun),
        *summary.federation_complaints(record, rerun),
    ]
    complaints += tables.partial_line_complaints(record)
    complaints += tables.clustering_complaints(record, divides=rerun.exp.clustering.has_clusters)
    complaints += summary.client_scores_complaints(record, rerun, tolerance)
    complaints += confusion_complaints(record, rerun, tolerance)
    complaints += presence_complaints(record, rerun, tolerance)
    complaints += [] if gaps else summary.summary_complaints(record, rerun, tolerance)
    for complaint in complaints:
        say(complaint)
    return differences, complaints


def recompute_segment(
    record: RunRecord, rerun: Rerun, segment: Segment, tolerance: float
) -> Iterator[tuple[int, Difference | None]]:
    """Yields the rounds of a segment up to the first that differs: later ones would differ because of it."""
    reached = segment.start
    try:
        for played in rerun.recompute_rounds(record.starts.get(segment.start), segment.last):
            reached = played.round
            problem = round_difference(record, rerun, played, tolerance)
            yield reached, Difference(reached, problem) if problem else None
            if problem:
                return
    except RunError as error:
        yield reached + 1, Difference(reached + 1, f"computed again, it ended: {error}")
        return
    except (ConfigError, OSError):
        raise
    except Exception as error:  # a part may not be able to read its memory
        if not segment.start:
            raise
        message = f"cannot go on from the state after round {reached}: {type(error).__name__}: {error}"
        yield reached + 1, Difference(reached + 1, message)
        return
    if reached < segment.last:
        yield reached + 1, Difference(reached + 1, "computed again, the run stopped before it")


def round_difference(record: RunRecord, rerun: Rerun, played: RecomputedRound, tolerance: float) -> str:
    """How a recomputed round differs from the record, in words; empty if it does not."""
    number, line = played.round, record.lines[played.round]
    begun_s = float(record.lines.get(number - 1, {}).get("sim_s") or 0)
    unevaluated = not rerun.exp.evaluation.is_due(number, begun_s, played.state.sim_s)
    problems = [differing_columns("metrics.csv", line, played.line)] if number == 1 else []
    problems.append(line_difference("metrics.csv", line, played.line, tolerance, blank=unevaluated))
    if number <= record.required_rounds:
        for name, lines in played.tables.items():
            written = record.lines_by_round.get((name, number), [])
            problems.append(differing_lines(name, written, lines, tolerance))
    recorded_digest = None if tolerance else record.chains.lines.get(number, {}).get("digest")
    if recorded_digest not in (None, played.digest):
        agrees = "" if any(problems) else " (metrics.csv agrees)"
        problems.append(f"the models' digest is {recorded_digest} in digests.csv, {played.digest} now{agrees}")
    elif not any(problems):
        problems.append(states.memory_difference(record, rerun, played.state, tolerance))
    return "; ".join(filter(None, problems))
