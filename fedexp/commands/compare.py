"""Test differences of methods, runs paired by seed.

A and B are run folders, sweeps, or folders with runs below. Words KEY=VALUE (selector=random) pick runs of the folders
on their side of --against. Every method in A is compared with the one method in B, seed by seed. Pairs are refused that
differ in data, split (who holds which example) or budget (rounds, clients, participants, how often the test data is
looked at, stop; local epochs, steps and batches; megabytes sent).
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedexp.commands import offered
from fedexp.commands.parsing import Parser, Wrong, below
from fedexp.config.override_text import short_text
from fedexp.core.errors import ConfigError
from fedexp.core.exits import FAILED, complain
from fedexp.core.files import shown, write_atomically
from fedexp.core.terminal import width
from fedexp.run.folders import OUTPUTS, is_run

if TYPE_CHECKING:
    from fedexp.compare.pairing import Contest
    from fedexp.compare.study import Comparison
    from fedexp.report.runs import Run

NAME = "compare.md"
UNEQUAL = ("epochs", "steps", "megabytes")  # as `fedexp.compare.equality` knows them, which needs NumPy
MEASURES = (
    "test_accuracy, accuracy_auc (or of another metric: test_rmse), loss_auc, roa@X, toa@X, with commas between; "
    "default: the first three of the main metric, and roa (with a simulated clock toa too) at the best value of "
    "evaluation.roa that half of the runs reach. Fewer need fewer seeds"
)
OUT = (
    "the page (.md) or the table in full precision (.csv). With more than two methods a figure of critical differences "
    "is drawn beside it (default: outputs/compare.png)"
)
FAIL_IF = (
    '"test_accuracy < -0.01" (also <=, >, >=; test_accuracy.low or .high: a bound of the interval): exit code 1 where '
    "the mean of A - B is so, or cannot be judged. May be given several times"
)


def parser() -> Parser:
    """Declares folders and picks; those before --against are A's, those after it B's."""
    made = Parser("compare A... --against B... [--fail-if TEXT]", __doc__)
    made.words("runs", lambda _, word: offered.begun(word))
    many: dict[str, Any] = {"action": "extend", "default": []}
    made.flag("the other side", "--against", nargs="*", values=offered.begun, metavar="B...", **many)
    made.flag(MEASURES, "--measures", type=_measures, metavar="NAMES", **many)
    made.flag(OUT, "--out", type=_out, values=below, metavar="FILE")
    free = f"{', '.join(UNEQUAL)}: what of the budget may differ, because that is what is compared"
    names = {"values": lambda typed: offered.listed(UNEQUAL, typed), "metavar": "NAMES"}
    made.flag(free, "--unequal", type=_unequal, **names, **many)
    made.flag(FAIL_IF, "--fail-if", action="append", default=[], metavar="TEXT")
    made.flag("print columns that do not fit the terminal, too", "--wide", action="store_true")
    return made


def act(words: list[str]) -> int:
    """Prints the comparison, writes what was asked for, and returns 1 where a condition of --fail-if holds."""
    at = next((place for place, word in enumerate(words) if word.partition("=")[0] == "--against"), len(words))
    asked = parser().read(words[:at])
    a = _side("before", vars(asked).pop("runs"))
    asked = parser().read(words[at:], asked)
    b = _side("after", [*asked.against, *asked.runs])
    from fedexp.compare import conditions, page, pairing, study

    checks = [conditions.parse(text) for text in asked.fail_if]
    contests = pairing.contests(_runs(*a), _runs(*b), set(asked.unequal))
    made = study.study(contests, asked.measures)
    target = asked.out or OUTPUTS / NAME
    try:
        written = list(_written(target, made, contests, page_asked=asked.out is not None))
    except OSError as error:
        raise ConfigError(f"cannot write {shown(target)}: {error.strerror}; give another --out") from error
    told = page.markdown(made, contests, None, width(asked.wide))
    sys.stdout.write(told + "".join(f"written  {shown(path)}\n" for path in written))
    sys.stdout.flush()
    failed = conditions.failures(checks, contests)
    for line in failed:
        complain(line)
    return FAILED if failed else 0


def _side(name: str, words: Sequence[str]) -> tuple[list[Path], dict[str, str]]:
    """The folders among the words, and the KEY=VALUE words that pick runs of them."""
    picks = [word for word in words if "=" in word and not Path(word).exists()]
    folders = [Path(word) for word in words if word not in picks]
    if not folders:
        raise ConfigError(
            f"compare needs folders of runs {name} --against; e.g. fedexp compare outputs/A --against outputs/B"
        )
    return folders, dict(word.split("=", 1) for word in picks)


def _measures(value: str) -> list[str]:
    if not value.strip():
        raise Wrong("needs names, e.g. --measures test_accuracy,roa@0.9")
    return [name for name in value.split(",") if name.strip()]


def _unequal(value: str) -> list[str]:
    names = [name.strip() for name in value.split(",")]
    if not set(names) <= set(UNEQUAL):
        raise Wrong(f"must name some of {', '.join(UNEQUAL)}, got {value or 'none'}; see --help")
    return names


def _out(value: str) -> Path:
    out = Path(value)
    if out.suffix not in (".md", ".csv"):
        raise Wrong(f"must name a file that ends in .md or .csv, got {value or 'none'}; e.g. --out {NAME}")
    if out.is_dir() or is_run(out.parent):
        raise Wrong(f"must name a file outside of run folders, got {value}; e.g. --out {NAME}")
    return out


def _runs(folders: Sequence[Path], picks: dict[str, str]) -> "list[Run]":
    from fedexp.config import roles
    from fedexp.report import methods, runs

    found, _ = runs.collect(folders, "compare")
    for key, value in picks.items():
        values = [methods.options(run).get(key, short_text(run.config.get(key))) for run in found]
        picked = [
            run for run, own in zip(found, values, strict=True) if own == value or _is(run.config.get(key), value)
        ]
        if not picked:
            if key in roles.names(changes_results=False):
                raise ConfigError(
                    f"{key} changes no result, so that runs are not told apart by it; pick by another key"
                )
            there = ", ".join(sorted(set(values)))
            raise ConfigError(f"no run below {', '.join(map(str, folders))} has {key}={value}; there: {there}")
        found = picked
    return found


def _is(number: object, text: str) -> bool:
    """Whether a text is this number, which may be written in many ways (0.10, 1e-1) and is shown with fewer digits."""
    try:
        return isinstance(number, int | float) and not isinstance(number, bool) and float(text) == number
    except ValueError:
        return False


def _written(target: Path, made: "Comparison", contests: "Sequence[Contest]", *, page_asked: bool) -> Iterator[Path]:
    """The files, each whole or absent: the figure of more than two methods, and the page or table asked for."""
    from fedexp.compare import critical_difference, page

    picture = target.with_suffix(".png") if made.ranks is not None else None
    if made.ranks is not None and picture is not None:
        title = f"Mean ranks by {made.ranked_by} over {made.ranks.blocks} blocks, 1 is best"
        critical_difference.draw(picture, made.ranks, title)
        yield picture
    if page_asked and target.suffix == ".csv":
        write_atomically(target, page.frame(made).to_csv(index=False).encode())
        yield target
    elif page_asked:
        text = page.markdown(made, contests, picture and picture.name.replace(" ", "%20"))
        write_atomically(target, f"# Comparison\n\n{text}".encode())
        yield target
