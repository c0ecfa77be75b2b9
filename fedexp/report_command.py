"""`fedexp report DIR... [--out FILE]`: the words read, the work left to `fedexp.report`."""

import sys
from pathlib import Path

from fedexp.endings import shown
from fedexp.folders import OUTPUTS, is_run
from fedexp.spec import ConfigError

NAME = "report.md"


def act(words: list[str]) -> int:
    """Writes the report and prints its tables and its place."""
    directories, page = read(words)
    from fedexp.report import methods, runs
    from fedexp.report import page as paper

    found, empty = runs.collect(directories)
    try:
        made = paper.write(page, methods.group(found), empty)
    except OSError as error:
        raise ConfigError(f"cannot write the report {shown(page)}: {error.strerror}; give another --out") from error
    for table in made:
        sys.stdout.write(f"{table.title}\n\n{table.grid().markdown()}\n")
    sys.stdout.write(f"page  {shown(page)}\n")
    return 0


def read(words: list[str]) -> tuple[list[Path], Path]:
    """Splits the words into the folders of runs and the page to write."""
    directories: list[Path] = []
    out: str | None = None
    left = iter(words)
    for word in left:
        key, equal, value = word.partition("=")
        if key == "--out":
            out = value if equal else next(left, "")
        elif word.startswith("-"):
            raise ConfigError(f"unknown flag {word}; report knows --out FILE")
        else:
            directories.append(Path(word))
    if not directories:
        raise ConfigError("report needs folders of runs; e.g. fedexp report outputs/latest")
    return directories, _page(directories, out)


def _page(directories: list[Path], out: str | None) -> Path:
    if out is None:
        return directories[0] / NAME if len(directories) == 1 else OUTPUTS / NAME
    page = Path(out)
    if page.suffix != ".md":
        raise ConfigError(f"--out must name a file that ends in .md, got {out or 'none'}; e.g. --out {NAME}")
    if page.is_dir():
        raise ConfigError(f"--out must name a file, but {out} is a folder; e.g. --out {page / NAME}")
    if is_run(page.with_suffix("")):
        raise ConfigError(f"--out {out} would put its pictures into the run folder {page.with_suffix('')}; rename it")
    return page
