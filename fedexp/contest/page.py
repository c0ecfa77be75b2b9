"""The page of a contest: best values, results with intervals, differences, and how much the values mattered."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedexp.compare import colors, critical_difference, equality, latex, pairing, statistics, study
from fedexp.compare import page as comparison_page
from fedexp.compare.quantities import Quantity, client_quantity, metric_quantity
from fedexp.contest.plan import ContestPlan
from fedexp.contest.tuned_runs import TunedMethod, new_seeds
from fedexp.files.atomic import display_path
from fedexp.maths.curve_metrics import higher_is_better
from fedexp.maths.metric_names import metric_text
from fedexp.maths.significance import pairs_needed
from fedexp.process.terminal import width
from fedexp.report.draw.markdown import Grid
from fedexp.report.pages.write_page import write_page
from fedexp.report.read.runs import Run, collect_runs

NAME, LATEX = "contest.md", "contest.tex"
OF_THE_GLOBAL_MODEL = (
    "Trials and differences are those of the global model, which the clients of a personal method may not use; with "
    "evaluation.validation_at=clients a contest is about the models that they use."
)
_FLAG = ", accepted by --unequal"  # which a contest does not have: what its methods spend is theirs


def write(folder: Path, plan: ContestPlan, methods: Sequence[TunedMethod]) -> str:
    """Writes `contest.md`, its tables as `contest.tex`, of more than two methods `contest.png`.

    Returns the page as wide as the terminal.

    Raises:
        ConfigError: no run of a method has a result, or pairs differ in data, split or budget.
    """
    search, names = methods[0].search, [method.contender.name for method in methods]
    all_runs = [collect_runs([folder / "runs" / method.contender.folder], "contest")[0] for method in methods]
    method_pairs = _pairs(names, all_runs)
    runs = [_with_new_model(method_runs) for method_runs in all_runs]
    quantity, notes = _deciding_quantity(search.metric, runs[0][0])
    comparison = replace(study.compare_methods(method_pairs, [quantity.name]), notes=notes)
    if comparison.ranks is not None:
        title = f"Mean ranks by {quantity.name} over {comparison.ranks.blocks} seeds, 1 is best"
        shown = colors.method_colors(method_pairs, collect_runs([folder / "runs"], "contest")[0])
        critical_difference.draw(folder / "contest.png", comparison.ranks, title, shown)
    best, results, sensitivity = _best_values(methods), _results(names, runs, quantity), _sensitivity(methods)
    before = _before_differences(plan, new_seeds(search, plan.seeds), quantity, best, results)
    after = (
        f"## Sensitivity\n\n{sensitivity.markdown()}\n"
        f"Validation {metric_text(search.metric)} over all trials of a method; a failed trial counts as the worst.\n"
    )
    page, text = (
        before + comparison_page.markdown(comparison, method_pairs, picture, columns) + after
        for picture, columns in (("contest.png", None), (None, width()))
    )
    tables = [("Best values", best), ("Results", results), ("Sensitivity", sensitivity)]
    write_page(folder / LATEX, latex.document(comparison, tables))
    write_page(folder / NAME, page)
    return f"{text}\n" + "".join(f"written  {display_path(folder / name)}\n" for name in (LATEX, NAME))


def _pairs(names: Sequence[str], runs: Sequence[Sequence[Run]]) -> list[pairing.MethodPair]:
    """Each method against the first; a run that failed leaves its pair out, and a note says so."""
    pairs = []
    for name, runs_a in zip(names[1:], runs[1:], strict=True):
        failed = [display_path(run.folder) for run in (*runs_a, *runs[0]) if run.has_failed]
        left_out = [f"left out, no update of any round was finite: {', '.join(failed)}"] if failed else []
        for pair in pairing.pair_methods(_with_new_model(runs_a), _with_new_model(runs[0]), equality.UNEQUAL):
            notes = (*left_out, *(note.replace(_FLAG, "") for note in pair.notes))
            pairs.append(replace(pair, a=name, b=names[0], notes=notes))
    return pairs


def _with_new_model(runs: Sequence[Run]) -> list[Run]:
    """The runs less those that failed, whose model is the first one."""
    return [run for run in runs if not run.has_failed]


def _deciding_quantity(metric: str, run: Run) -> tuple[Quantity, tuple[str, ...]]:
    """What methods are compared by, given any run, and what must be known of it."""
    if run.config.get("evaluation.validation_at") == "clients":
        return client_quantity(f"personal_{metric}", metric), ()
    measures_clients = run.config.get("evaluation.personal_fraction") or run.config.get("evaluation.own_test")
    has_global_model = run.config.get("scenario.training") != "local"
    return metric_quantity(f"test_{metric}"), (OF_THE_GLOBAL_MODEL,) if measures_clients and has_global_model else ()


def too_few_seeds(plan: ContestPlan) -> str:
    """A sentence where so few new seeds can show no difference, whatever comes out; else empty."""
    comparisons = len(plan.methods) - 1
    needed = pairs_needed(comparisons)
    if plan.seeds >= needed:
        return ""
    seeds = f"{plan.seeds} new seed{'s' * (plan.seeds > 1)}"
    return (
        f"{seeds} can show no difference, whatever comes out: the smallest p there is is "
        f"{statistics.smallest_p(plan.seeds, comparisons):.3g}, corrected for {comparisons} comparison(s). {needed} "
        f"are needed; the same command with --seeds {needed} goes on and adds them."
    )


def _before_differences(plan: ContestPlan, new: Sequence[int], quantity: Quantity, best: Grid, results: Grid) -> str:
    search = plan.search(plan.methods[0])
    metric = metric_text(search.metric)
    validation, test = f"validation {metric}", f"test {metric}"
    if quantity.at_clients:
        validation += " of the models that clients use, each on examples that its client set apart (mean over clients)"
        test = f"{metric} of the models that clients use, each on other examples of its client (mean over clients)"
    notes = [
        f"{search.trials} trials for each method, chosen by {validation}, on {' '.join(search.space.seeds)}",
        f"Results: {test}, at the end of runs with the best values, on seeds {new[0]} to {new[-1]}",
    ]
    if few := too_few_seeds(plan):
        notes.append(few)
    if plan.looked:
        counts = ", then ".join(map(str, plan.looked))
        notes.append(
            f"Seeds were added after the results of {counts} had been seen. A p-value holds for a number of seeds that "
            "was chosen before; who adds seeds until a difference shows will find one too often."
        )
    text = "".join(f"* {note}\n" for note in notes)
    return f"""# Contest

{text}
## Best values

{best.markdown()}
## Results

{results.markdown()}
Student's 95 % interval of the mean; it takes {statistics.FEWEST} seeds at least.

"""


def _best_values(methods: Sequence[TunedMethod]) -> Grid:
    rows = [[method.contender.name, " ".join(method.overrides), f"{method.value:.4f}"] for method in methods]
    return Grid(("method", "best values", f"validation {metric_text(methods[0].search.metric)}"), rows, texts=2)


def _results(names: Sequence[str], runs: Sequence[Sequence[Run]], quantity: Quantity) -> Grid:
    rows = []
    for name, method_runs in zip(names, runs, strict=True):
        ends = [quantity.of(run) for run in method_runs if run.is_finished]
        values = np.array([end for end in ends if end is not None])
        low, high = statistics.interval(values)
        interval = "-" if low is None else f"{low:.4f} to {high:.4f}"
        rows.append([name, str(len(values)), f"{values.mean():.4f}" if len(values) else "-", interval])
    return Grid(("method", "seeds", f"mean {quantity.name}", "95 % interval"), rows)


def _sensitivity(methods: Sequence[TunedMethod]) -> Grid:
    rows, sign = [], 1 if higher_is_better(methods[0].search.metric) else -1
    for method in methods:
        ended = [sign * trial.value for trial in method.trials if trial.state.name == "COMPLETE"]
        failed = len(method.trials) - len(ended)
        values = sorted([*ended, *[-np.inf] * failed])
        middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
        cells = [f"{sign * value:.4f}" if np.isfinite(value) else "failed" for value in (values[-1], middle, values[0])]
        rows.append([method.contender.name, str(len(method.trials)), str(failed), *cells])
    return Grid(("method", "trials", "failed", "best", "median", "worst"), rows)
