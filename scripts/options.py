"""Writes the tables of what can be composed, from `conf/`: the short one into README.md, the long into conf/README.md.

python scripts/options.py            writes both
python scripts/options.py --check    says which is out of date, and fails if one is
"""

import re
import sys
from pathlib import Path

from fedexp.commands import listing
from fedexp.config import catalog
from fedexp.core.files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "conf"
MARKED = re.compile(r"(?<=<!-- options -->\n).*?(?=<!-- /options -->)", re.DOTALL)


def short() -> str:
    """A line for each group."""
    lines = ["| group | decides | options, the default in bold |", "|---|---|---|"]
    for group, purpose in catalog.purposes(CONF).items():
        names = ", ".join(f"**`{name[:-1]}`**" if name.endswith("*") else f"`{name}`" for name in _options(group))
        lines.append(f"| [`{group}`](conf/README.md#{group}) | {_cell(purpose)} | {names} |")
    return _lines(lines)


def long() -> str:
    """A chapter for each group, a line for each of its options and keys."""
    lines: list[str] = []
    for group, purpose in catalog.purposes(CONF).items():
        lines += ["", f"### {group}", "", f"{purpose[0].upper()}{purpose[1:]}.", "", "| option | what it is | sets |"]
        lines += ["|---|---|---|"]
        for name in _options(group):
            plain = name.rstrip("*")
            shown = f"**`{plain}`**" if name.endswith("*") else f"`{plain}`"
            told = _cell(catalog.description(CONF, group, plain))
            lines.append(f"| {shown} | {told} | {_sets(group, plain)} |")
    return _lines([*lines, ""])


def pages() -> dict[Path, str]:
    """What the two pages must hold."""
    tables = {ROOT / "README.md": short(), CONF / "README.md": long()}
    return {path: MARKED.sub(lambda _, table=table: table, path.read_text()) for path, table in tables.items()}


def main(words: list[str]) -> int:
    """Writes or checks both pages; 1 where one is out of date."""
    stale = [path for path, text in pages().items() if path.read_text() != text]
    for path in stale:
        if "--check" in words:
            print(f"{path.relative_to(ROOT)} does not show what conf/ holds; run python scripts/options.py")
        else:
            write_atomically(path, pages()[path].encode())
    return int("--check" in words and bool(stale))


def _options(group: str) -> list[str]:
    return listing.marked(CONF, group)


def _sets(group: str, option: str) -> str:
    words = listing.own_keys(CONF, group, option).items()
    swept = catalog.sweep(CONF / group / f"{option}.yaml").items()
    shown = [f"`{_cell(word)}`" + (f" {_cell(said)}" if said else "") for word, said in words]
    return "<br>".join([*shown, *(f"with `-m`: `{_cell(f'{key}={values}')}`" for key, values in swept)])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
