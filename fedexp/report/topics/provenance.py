"""What a report was made of: which runs, what to doubt, what differs between them, what they were made with."""

from collections.abc import Iterator, Mapping, Sequence

from fedexp.config.override_text import short_text
from fedexp.core.join_first import join_first
from fedexp.files.atomic import display_path
from fedexp.maths.metric_names import metric_text
from fedexp.report.draw.markdown import Grid
from fedexp.report.read.idle import MARK, is_idle
from fedexp.report.read.methods import Method, differing_keys, differing_options, options, settings
from fedexp.report.read.runs import Run

_LISTED = 4  # folders
_PARTLY = "which makes its AUC, selections and rounds smaller and its accuracies earlier than those of a finished run"


def count_text(methods: Sequence[Method]) -> str:
    """How many runs of how many methods."""
    count = sum(len(method.runs) for method in methods)
    run_text, method_text = f"{count} run{'s' * (count > 1)}", f"{len(methods)} method{'s' * (len(methods) > 1)}"
    return f"{run_text} of {method_text}; the runs of a method differ in the seed only."


def caveats(methods: Sequence[Method]) -> list[str]:
    """What the reader must know before trusting a run's number, folders in backticks."""
    notes = []
    for method in methods:
        for run in method.runs:
            if not run.is_finished:
                notes.append(
                    f"`{display_path(run.folder)}` is unfinished: used up to round {run.rounds[-1]}, {_PARTLY}."
                )
        notes += [
            f"`{display_path(run.folder)}` is left out: it ended in round {run.rounds[-1]} of "
            f"{run.config.get('rounds', '?')}, and other runs of {method.label} are finished."
            for run in method.unfinished
        ]
        notes += _repeat_notes(method)
        notes += _pooled_statistics_note(method)
    return [*notes, *_scaled_targets_note(methods)]


def lost_runs(roundless: Mapping[str, Sequence[Run]]) -> Iterator[str]:
    """A sentence for each method that has runs without a round, and each error that ended them."""
    for label, runs in roundless.items():
        reasons = [run.failure for run in runs]
        for reason in dict.fromkeys(reasons):
            folders = [display_path(run.folder) for run, text in zip(runs, reasons, strict=True) if text == reason]
            listed = join_first(folders, _LISTED)
            many = f"{len(folders)} run{'s' * (len(folders) > 1)}"
            verbs = ("have", "are") if len(folders) > 1 else ("has", "is")
            yield (
                f"{label}: {many} {verbs[0]} no finished round and {verbs[1]} left out ({listed}): "
                f"{reason or 'not begun, at work or interrupted'}"
            )


def _repeat_notes(method: Method) -> Iterator[str]:
    """What was run again, and whether it came out the same."""
    for run in method.runs:
        repeats = [repeat for repeat in method.repeats if repeat.seed == run.seed]
        if not repeats:
            continue
        ends = {same_seed.final(f"test_{run.metric}") for same_seed in (run, *repeats)}
        agreement = "all end with the same" if len(ends) == 1 else "they end with different"
        outcome = f"{agreement} {metric_text(run.metric)}"
        names = ", ".join(f"`{display_path(repeat.folder)}`" for repeat in repeats)
        yield (
            f"{method.label}: seed {run.seed} was run {len(repeats) + 1} times; `{display_path(run.folder)}` counts, "
            f"not {names}; {outcome}."
        )


def _pooled_statistics_note(method: Method) -> Iterator[str]:
    """That clients which train alone have the table's encoding from everybody."""
    config = method.runs[0].config
    if config.get("scenario.training") == "local" and config.get("dataset.statistics") == "pooled":
        yield (
            f"{method.label}: every client trained alone, but the table is encoded by means, deviations and categories "
            "of all clients' training rows (`dataset.statistics=pooled`)."
        )


def _scaled_targets_note(methods: Sequence[Method]) -> Iterator[str]:
    """That errors are not in the units of the targets."""
    configs = {method.label: method.runs[0].config for method in methods}
    scaled = [
        label
        for label, config in configs.items()
        if config.get("dataset.target_scale") == "standard" and config.get("dataset.predicts", "numbers") == "numbers"
    ]
    if scaled:
        begin = "" if len(scaled) == len(configs) else f"{join_first(scaled, _LISTED)}: "
        yield (
            f"{begin}RMSE and MAE are in standard deviations of the targets, of training or of public ones, and losses "
            "are of targets that were divided by these (`dataset.target_scale=standard`)."
        )


def differences_table(methods: Sequence[Method]) -> Grid | None:
    """Every group and key in which the methods differ; with more of them than methods, a row a setting.

    A key that does nothing in any of them is left out; where it does nothing, it says so.
    """
    first = [method.runs[0] for method in methods]
    groups = differing_options([options(run) for run in first])
    keys = [
        key
        for key in differing_keys(first)
        if not key.endswith("_target_") and not all(is_idle(run, key) for run in first if key in settings(run))
    ]
    if not groups and not keys:
        return None
    names = ("method", *groups, *keys)
    rows = [
        [method.label, *(options(run).get(name, "-") for name in groups), *(_setting(run, key) for key in keys)]
        for method, run in zip(methods, first, strict=True)
    ]
    if len(names) - 1 <= len(rows):
        return Grid(names, rows, 1 + len(groups))
    columns = list(zip(names, *rows, strict=True))
    return Grid(("setting", *columns[0][1:]), columns[1:], len(columns[0]))


def _setting(run: Run, key: str) -> str:
    if key not in settings(run):
        return "-"
    return f"{short_text(settings(run)[key])}{f' ({MARK})' if is_idle(run, key) else ''}"


def runs_table(methods: Sequence[Method]) -> Grid:
    """Where each run lies and what it was made with."""
    headings = ("folder", "method", "seed", "rounds", "state", "versions", "commit", "device")
    rows = [_run_row(method, run) for method in methods for run in method.members]
    return Grid(headings, rows, len(headings))


def _state(run: Run) -> str:
    return "failed" if run.has_failed else "finished" if run.is_finished else "unfinished"


def _run_row(method: Method, run: Run) -> list[str]:
    summary = run.summary or {}
    versions = ", ".join(f"{name} {version}" for name, version in (summary.get("versions") or {}).items())
    git = summary.get("git") or {}
    commit = f"{git['commit'][:10]}{' (changed)' if git.get('dirty') else ''}" if git.get("commit") else "-"
    state = "repeat" if run in method.repeats else _state(run)
    seed = "-" if run.seed is None else str(run.seed)
    device = summary.get("device") or "-"
    return [display_path(run.folder), method.label, seed, str(run.rounds[-1]), state, versions or "-", commit, device]
