"""Test differences of methods, runs paired by seed.

A and B are run folders, sweeps, or folders with runs below. Words KEY=VALUE (selector=random) pick runs of the folders
on their side of --against. Every method in A is compared with the one method in B, seed by seed. Pairs are refused that
differ in data, split (who holds which example) or budget (rounds, clients, participants, how often the test data is
looked at, stop; local epochs, steps and batches; megabytes sent). Local, central and federated training of the same
data may be compared: what sets them apart is told.
"""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fedexp.commands.arguments import candidates
from fedexp.commands.arguments.fail_if import report_failed
from fedexp.commands.arguments.json_document import add_json_flag, json_document
from fedexp.commands.arguments.parsing import InvalidArgument, Parser, complete_folder
from fedexp.config.override_text import short_text
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path, shell_path
from fedexp.files.unwritable import explain_unwritable
from fedexp.process.terminal import print_text, width
from fedexp.run.folders import OUTPUTS, is_run, is_sweep

if TYPE_CHECKING:
    from fedexp.compare.conditions import Condition
    from fedexp.compare.pairing import MethodPair
    from fedexp.compare.study import Comparison
    from fedexp.report.read.runs import Run

NAME = "compare.md"
UNEQUAL = ("epochs", "steps", "megabytes")  # as `fedexp.compare.equality` knows them, which needs NumPy
MEASURES = (
    "test_accuracy, accuracy_auc (or of another metric: test_rmse), loss_auc, roa@X, toa@X, with commas between; at "
    "the clients personal_accuracy, personal_worst_decile, personal_best_decile of their own models, site_accuracy and "
    "so on of the global one; "
    "default: the first three of the main metric, and roa (with a simulated clock toa too) at the best value of "
    "evaluation.roa that half of the runs reach. Fewer need fewer seeds"
)
OUT = (
    "the page (.md), its table as LaTeX (.tex, booktabs) or in full precision (.csv). With more than two methods a "
    "figure of critical differences "
    "is drawn beside it (default: outputs/compare.png)"
)
FAIL_IF = (
    '"test_accuracy < -0.01" (also <=, >, >=; test_accuracy.low or .high: a bound of the interval): exit code 1 where '
    "the mean of A - B is so, or cannot be judged. May be given several times"
)


def build_parser() -> Parser:
    """Declares folders and picks; those before --against are A's, those after it B's."""
    parser = Parser("compare A... --against B... [--fail-if TEXT]", __doc__)
    parser.words("runs", lambda _, word: candidates.complete_run_folder(word))
    many: dict[str, Any] = {"action": "extend", "default": []}
    parser.add_flag(
        "the other side", "--against", nargs="*", values=candidates.complete_run_folder, metavar="B...", **many
    )
    parser.add_flag(MEASURES, "--measures", type=_measures, metavar="NAMES", **many)
    parser.add_flag(OUT, "--out", type=_out, values=complete_folder, metavar="FILE")
    free = f"{', '.join(UNEQUAL)}: what of the budget may differ, because that is what is compared"
    names = {"values": lambda typed: candidates.complete_list(UNEQUAL, typed), "metavar": "NAMES"}
    parser.add_flag(free, "--unequal", type=_unequal, **names, **many)
    parser.add_flag(FAIL_IF, "--fail-if", action="append", default=[], metavar="TEXT")
    parser.add_flag("print columns that do not fit the terminal, too", "--wide", action="store_true")
    add_json_flag(parser)
    return parser


def act(words: list[str]) -> int:
    """Prints the comparison, writes what was asked for, and returns 1 where a condition of --fail-if holds."""
    split_position = next(
        (position for position, word in enumerate(words) if word.partition("=")[0] == "--against"), len(words)
    )
    arguments = build_parser().read(words[:split_position])
    a_words = vars(arguments).pop("runs")
    arguments = build_parser().read(words[split_position:], arguments)
    b_words = [*arguments.against, *arguments.runs]
    from fedexp.compare import conditions, page

    compared = compare_runs(a_words, b_words, arguments.measures, arguments.unequal, arguments.fail_if)
    comparison, method_pairs, sides = compared.comparison, compared.method_pairs, compared.sides
    target = arguments.out or OUTPUTS / NAME
    with explain_unwritable(target, "--out"):
        picture = _draw_ranks(target, comparison, method_pairs, sides)
        written = [*picture, *_write_page(arguments.out, comparison, method_pairs, picture)]
    failed = conditions.failures(compared.checks, method_pairs)
    with json_document(arguments.json) as content:
        if arguments.json:
            content |= {**page.document(comparison, method_pairs), "failed": failed, "written": written}
        text_report = page.markdown(comparison, method_pairs, None, width(arguments.wide))
        print_text(text_report + "".join(f"written  {display_path(path)}\n" for path in written))
    return report_failed(failed)


class Compared(NamedTuple):
    """A comparison with the runs of both sides, those of A and B that were paired, and conditions on it."""

    comparison: "Comparison"
    method_pairs: "Sequence[MethodPair]"
    sides: "Sequence[Sequence[Run]]"
    checks: "Sequence[Condition]"


def compare_runs(
    a_words: Sequence[str],
    b_words: Sequence[str],
    measures: Sequence[str] = (),
    unequal: Sequence[str] = (),
    fail_if: Sequence[str] = (),
) -> Compared:
    """Compares the runs that the words of each side name: folders, and KEY=VALUE to pick runs of them.

    Raises:
        ConfigError: they cannot be read or paired, or a condition names what they do not have.
    """
    from fedexp.compare import conditions, pairing, picks, study
    from fedexp.report.read.methods import labels_beside
    from fedexp.report.read.runs import collect_runs
    from fedexp.report.topics import provenance

    a = _side("before", a_words)
    b = _side("after", b_words, a[0][0])
    sides, roundless = zip(*(collect_runs(folders, "compare") for folders, _ in (a, b)), strict=True)
    chosen = [picks.pick_runs([*runs, *lost], *side) for runs, lost, side in zip(sides, roundless, (a, b), strict=True)]
    a_runs, b_runs = map(picks.with_rounds, chosen)
    checks = [conditions.parse(text, [*a_runs, *b_runs]) for text in fail_if]
    method_pairs = pairing.pair_methods(a_runs, b_runs, set(unequal))
    comparison = study.compare_methods(method_pairs, list(measures))
    lost_runs = {run.folder: run for runs in chosen for run in runs if not run.has_rounds}
    notes = provenance.lost_runs(labels_beside([*sides[0], *sides[1]], [*lost_runs.values()]))
    comparison = replace(comparison, notes=(*comparison.notes, *notes))
    return Compared(comparison, method_pairs, sides, checks)


def _side(name: str, words: Sequence[str], a_folder: Path | None = None) -> tuple[list[Path], dict[str, str]]:
    """The folders among the words, and the KEY=VALUE words that pick runs of them; `a_folder` is one of A."""
    picks = [word for word in words if "=" in word and not Path(word).exists()]
    folders = [Path(word) for word in words if word not in picks]
    if not folders:
        raise ConfigError(f"compare needs folders of runs {name} --against; e.g. {_example(a_folder)}")
    values: dict[str, str] = {}
    for key, _, value in (word.partition("=") for word in picks):
        if values.setdefault(key, value) != value:
            raise ConfigError(
                f"{key} must be picked once {name} --against, got {key}={values[key]} and {key}={value}; without it "
                "every method of the folders is compared with B"
            )
    return folders, values


def _example(folder: Path | None) -> str:
    """A whole command; of a sweep its methods against the first of them."""
    if folder is None or not is_sweep(folder):
        return f"fedexp compare {shell_path(folder or Path('outputs/A'))} --against outputs/B"
    from fedexp.sweep.frame import points

    varied = next((point["varied"] for point in points(folder)), {})
    pick = "".join(f" {shlex.quote(f'{key}={short_text(value)}')}" for key, value in list(varied.items())[:1])
    return f"fedexp compare {shell_path(folder)} --against {shell_path(folder)}{pick or ' KEY=VALUE'}"


def _measures(value: str) -> list[str]:
    if not value.strip():
        raise InvalidArgument("needs names, e.g. --measures test_accuracy,roa@0.9")
    return [name for name in value.split(",") if name.strip()]


def _unequal(value: str) -> list[str]:
    names = [name.strip() for name in value.split(",")]
    if not set(names) <= set(UNEQUAL):
        raise InvalidArgument(f"must name some of {', '.join(UNEQUAL)}, got {value or 'none'}; see --help")
    return names


def _out(value: str) -> Path:
    out = Path(value)
    if out.suffix not in (".md", ".tex", ".csv"):
        raise InvalidArgument(
            f"must name a file that ends in .md, .tex or .csv, got {value or 'none'}; e.g. --out {NAME}"
        )
    if out.is_dir() or is_run(out.parent):
        raise InvalidArgument(f"must name a file outside of run folders, got {value}; e.g. --out {NAME}")
    return out


def _draw_ranks(
    target: Path, comparison: "Comparison", method_pairs: "Sequence[MethodPair]", sides: "Sequence[Sequence[Run]]"
) -> list[Path]:
    """The figure of more than two methods beside the target, whole or absent, in the colours of a report."""
    from fedexp.compare import colors, critical_difference

    if comparison.ranks is None:
        return []
    picture = target.with_suffix(".png")
    title = f"Mean ranks by {comparison.ranked_by} over {comparison.ranks.blocks} blocks, 1 is best"
    runs = {run.folder.resolve(): run for side in sides for run in side}
    critical_difference.draw(picture, comparison.ranks, title, colors.method_colors(method_pairs, [*runs.values()]))
    return [picture]


def _write_page(
    out: Path | None, comparison: "Comparison", method_pairs: "Sequence[MethodPair]", pictures: Sequence[Path]
) -> list[Path]:
    """The page or table that was asked for, whole or absent."""
    if out is None:
        return []
    from fedexp.report.pages.write_page import write_page

    write_page(out, _content(out.suffix, comparison, method_pairs, pictures))
    return [out]


def _content(
    ending: str, comparison: "Comparison", method_pairs: "Sequence[MethodPair]", pictures: Sequence[Path]
) -> str:
    """What a file with this ending holds."""
    from fedexp.compare import latex, page

    if ending == ".csv":
        return page.frame(comparison).to_csv(index=False)
    if ending == ".tex":
        return latex.document(comparison)
    picture = next((path.name.replace(" ", "%20") for path in pictures), None)
    text = page.markdown(comparison, method_pairs, picture)
    return f"# Comparison\n\n{text}"
