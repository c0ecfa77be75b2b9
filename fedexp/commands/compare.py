"""`fedexp compare A... --against B...`: the words read, the work left to `fedexp.compare`."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fedexp.config.override_text import short_text
from fedexp.core.errors import ConfigError, nearest
from fedexp.core.exits import FAILED, complain
from fedexp.core.files import shown, write_atomically
from fedexp.core.terminal import width
from fedexp.run.folders import OUTPUTS, is_run

if TYPE_CHECKING:
    from fedexp.compare.pairing import Contest
    from fedexp.compare.study import Comparison
    from fedexp.report.runs import Run

VALUED = ("--out", "--measures", "--fail-if", "--unequal")
FLAGS = ("--against", *VALUED, "--wide")
NAME = "compare.md"


@dataclass
class Side:
    """Folders, and KEY=VALUE words that pick runs of them."""

    folders: list[Path] = field(default_factory=list)
    picks: dict[str, str] = field(default_factory=dict)


@dataclass
class CompareRequest:
    """What the words ask for."""

    a: Side = field(default_factory=Side)
    b: Side = field(default_factory=Side)
    out: Path | None = None
    measures: list[str] = field(default_factory=list)
    fail_if: list[str] = field(default_factory=list)
    unequal: set[str] = field(default_factory=set)
    wide: bool = False


def act(words: list[str]) -> int:
    """Prints the comparison, writes what was asked for, and returns 1 where a condition of --fail-if holds."""
    asked = read(words)
    from fedexp.compare import conditions, page, pairing, study

    checks = [conditions.parse(text) for text in asked.fail_if]
    contests = pairing.contests(_runs(asked.a), _runs(asked.b), asked.unequal)
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


def read(words: Sequence[str]) -> CompareRequest:
    """Sorts the words; whatever stands before --against is A's, after it B's."""
    asked, left = CompareRequest(), iter(words)
    side = asked.a
    for word in left:
        flag, equal, value = word.partition("=")
        if flag == "--against":
            side = asked.b
            _place(side, value) if equal else None
        elif word == "--wide":
            asked.wide = True
        elif flag in VALUED:
            _take(asked, flag, value if equal else next(left, ""))
        elif word.startswith("-"):
            raise ConfigError(f"unknown flag {flag}; {nearest(flag, FLAGS)}")
        else:
            _place(side, word)
    for name, given in (("before", asked.a), ("after", asked.b)):
        if not given.folders:
            raise ConfigError(
                f"compare needs folders of runs {name} --against; e.g. fedexp compare outputs/A --against outputs/B"
            )
    return asked


def _place(side: Side, word: str) -> None:
    key, equal, value = word.partition("=")
    if equal and not Path(word).exists():
        side.picks[key] = value
    else:
        side.folders.append(Path(word))


def _take(asked: CompareRequest, flag: str, value: str) -> None:
    if flag == "--measures":
        asked.measures += [name for name in value.split(",") if name.strip()]
        if not value.strip():
            raise ConfigError("--measures needs names, e.g. --measures test_accuracy,roa@0.9")
    elif flag == "--unequal":
        asked.unequal |= _unequal(value)
    elif flag == "--fail-if":
        asked.fail_if.append(value)
    else:
        asked.out = _out(value)


def _unequal(value: str) -> set[str]:
    from fedexp.compare.equality import UNEQUAL

    names = {name.strip() for name in value.split(",")}
    if not names <= set(UNEQUAL):
        raise ConfigError(f"--unequal must name some of {', '.join(UNEQUAL)}, got {value or 'none'}; see --help")
    return names


def _out(value: str) -> Path:
    out = Path(value)
    if out.suffix not in (".md", ".csv"):
        raise ConfigError(f"--out must name a file that ends in .md or .csv, got {value or 'none'}; e.g. --out {NAME}")
    if out.is_dir() or is_run(out.parent):
        raise ConfigError(f"--out must name a file outside of run folders, got {value}; e.g. --out {NAME}")
    return out


def _runs(side: Side) -> "list[Run]":
    from fedexp.report import methods, runs

    found, _ = runs.collect(side.folders, "compare")
    for key, value in side.picks.items():
        values = [methods.options(run).get(key, short_text(run.config.get(key))) for run in found]
        picked = [
            run for run, own in zip(found, values, strict=True) if own == value or _is(run.config.get(key), value)
        ]
        if not picked:
            there = ", ".join(sorted(set(values)))
            raise ConfigError(f"no run below {', '.join(map(str, side.folders))} has {key}={value}; there: {there}")
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
