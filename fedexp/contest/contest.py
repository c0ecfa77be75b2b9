"""A contest from its plan to its page: a search for each method, then runs with its best values on new seeds.

The folder holds `contest.yaml`, `search/METHOD` (a search each), `runs/METHOD/seed=K` and at the end `contest.md` and
`contest.tex`. Every step goes on where it was killed, so a contest is taken up again by going through all of them. The
same contest may have more seeds later: no search has seen them, and the trials stay as they were.
"""

from collections.abc import Sequence
from pathlib import Path

from fedexp.config.saved_config import refuse_changed_below
from fedexp.config.trust import Trust
from fedexp.contest import page
from fedexp.contest.methods import Contender
from fedexp.contest.plan import NAME, ContestPlan, earlier_plan
from fedexp.contest.tuned_runs import TunedMethod, run_all
from fedexp.core.errors import ConfigError, RunError
from fedexp.files.atomic import display_path, write_atomically
from fedexp.files.open_folders import make_folder
from fedexp.files.untrusted import refuse_special_files
from fedexp.files.unwritable import explain_unwritable
from fedexp.process.exits import resumable
from fedexp.process.terminal import print_text
from fedexp.run import folders
from fedexp.search import search, table
from fedexp.sweep.launchers.contract import PointEnd


def begin(plan: ContestPlan, folder: Path) -> tuple[ContestPlan, bool]:
    """Writes the plan into a folder; returns it as it is kept there, and whether the contest is new.

    Where this contest was begun already, its plan gets the seeds that are new in this one.

    Raises:
        ConfigError: the folder holds another contest, or this one with more seeds, or another process works on it.
    """
    if not folders.is_contest(folder):
        with explain_unwritable(folder, "--out"):
            folders.claim(folder, dated=False)
        folders.link_latest(folder)
        write_atomically(folder / NAME, plan.text().encode())
        return plan, True
    refuse_special_files(folder, writing=True)
    with folders.lock_folder(folder):  # a plan that is being worked on must stay as it is
        return _extend(plan, folder), False


def _extend(plan: ContestPlan, folder: Path) -> ContestPlan:
    """The plan that a folder holds, with the seeds that are new in this one."""
    earlier = earlier_plan(plan, folder)
    if earlier is None:
        raise ConfigError(f"{display_path(folder)} holds another contest; give another --out")
    if plan.seeds < earlier.seeds:
        raise ConfigError(
            f"{display_path(folder)} has {earlier.seeds} new seeds already, got --seeds {plan.seeds}; give --seeds "
            f"{earlier.seeds} or more, or another --out"
        )
    extended = earlier.with_seeds(plan.seeds, looked=(folder / page.NAME).is_file())
    if extended != earlier:
        write_atomically(folder / NAME, extended.text().encode())
    return extended


def run_contest(plan: ContestPlan, folder: Path, jobs: int, trust: Trust) -> str:
    """Does what the contest lacks, with `jobs` processes; returns its page.

    Raises:
        RunError: all trials or all runs on new seeds of a method failed, or on each seed its run or that of the first;
            or some of these runs did, then the page tells of the others.
    """
    if few := page.too_few_seeds(plan):
        print_text(f"note  {few}\n")
    refuse_changed_below(folder, trust)
    runs = len(plan.methods) * (plan.trials + plan.seeds)
    print_text(
        f"{len(plan.methods)} methods, each with {plan.trials} trials and {plan.seeds} runs on new seeds: {runs} in "
        f"all, in {display_path(folder)}\n"
    )
    with resumable(folder), folders.lock_folder(folder):
        _refuse_more(plan, folder)
        methods = [_tune(plan, method, folder / "search" / method.folder, jobs, trust) for method in plan.methods]
        failed = run_all(methods, folder / "runs", plan.seeds, jobs, trust)
        _refuse_failed(methods, failed, folder, plan.seeds)
        text = page.write(folder, plan, methods)
    if failed:
        print_text(text)
        raise RunError(
            f"{len(failed)} run(s) failed, such as {display_path(failed[0].folder)}: {failed[0].message}"
            f"{_retry_hint(failed, folder)}"
        )
    return text


def _refuse_more(plan: ContestPlan, folder: Path) -> None:
    """Raises ConfigError where the folder holds more trials or seeds than its plan says."""
    for method in plan.methods:
        trials, runs = (folder / parent / method.folder for parent in ("search", "runs"))
        numbers = {path.name for path in trials.glob("*/*/") if path.name.isdecimal()}
        seeds = {path.name for path in runs.glob("seed=*/")}
        for key, count, planned in (("trials", len(numbers), plan.trials), ("seeds", len(seeds), plan.seeds)):
            if count > planned:
                raise ConfigError(
                    f"{display_path(folder)} has {count} {key} of {method.name}, but {NAME} says {planned}, and so "
                    f"would the page, which takes all of them; write {key}: {count} again"
                )


def _refuse_failed(methods: Sequence[TunedMethod], failed: Sequence[PointEnd], folder: Path, seeds: int) -> None:
    """Raises RunError where a method has a run on no new seed, or on none that the first one has, too."""
    ends = [_ends_of(method, failed, folder) for method in methods]
    for method, method_ends in zip(methods, ends, strict=True):
        missing = {end.folder.name: end for end in (*method_ends, *ends[0])}
        if len(missing) < seeds:
            continue
        name, first = method.contender.name, methods[0].contender.name
        outcome = f"all {seeds} run(s) of {name} on new seeds failed"
        if len(method_ends) < seeds:
            outcome = f"on each of {seeds} new seed(s) the run of {first} or of {name} failed"
        end = next(iter(missing.values()))
        hint = _retry_hint([*missing.values()], folder)
        raise RunError(f"{outcome}, such as {display_path(end.folder)}: {end.message}{hint}")


def _retry_hint(failed: Sequence[PointEnd], folder: Path) -> str:
    """What tries failed runs again; empty where each came to its end, as it would again."""
    if all(folders.is_finished(end.folder) for end in failed):
        return ""
    return f"; fedexp resume {display_path(folder)} tries again"


def _ends_of(method: TunedMethod, ends: Sequence[PointEnd], folder: Path) -> list[PointEnd]:
    run_folder = (folder / "runs" / method.contender.folder).absolute()
    return [end for end in ends if end.folder.parent == run_folder]


def _tune(plan: ContestPlan, method: Contender, folder: Path, jobs: int, trust: Trust) -> TunedMethod:
    print_text(f"search for {method.name}\n")
    make_folder(folder)
    method_search = plan.search(method)
    search.save(method_search, folder)
    search.run_search(folder, jobs, trust)
    (study,) = search.open_studies(method_search, folder)
    trials = study.trials()
    if running := [trial.number for trial in trials if trial.state.name == "RUNNING"]:
        raise RunError(
            f"{display_path(study.trial_folder(running[0]))} must have ended before the best values are chosen, but "
            f"another process runs it; once it has, fedexp resume {display_path(folder.parents[1])} goes on"
        )
    best = table.best(study)
    if best is None:
        raise RunError(f"all trials of {method.name} failed, see {display_path(study.folder)}; give it other values")
    return TunedMethod(method, method_search, table.overrides(method_search.space, best), best.value, trials)
