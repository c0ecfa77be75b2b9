"""Writes what can be composed, from `conf/`, into the pages of the documentation, between `<!-- NAME -->` and its end.

python scripts/options.py            writes
python scripts/options.py --check    says which page is out of date, and fails if one is
"""

import ast
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap

from fedexp.commands.list import marked_options, option_keys
from fedexp.config import catalog
from fedexp.config.override_text import plain_text
from fedexp.files.atomic import write_atomically
from fedexp.report.draw.markdown import escape_around_code

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts import compatibility_page, reference_page  # noqa: E402

CONF = ROOT / "conf"
COLUMNS = 120  # what a terminal shows
INDENT = "    "


def groups() -> str:
    """A line for each group."""
    return _lines([f"* [{group}](options/{group}.md): {purpose}" for group, purpose in catalog.purposes(CONF).items()])


def group_page(group: str, purpose: str) -> str:
    """The page of a group: a paragraph for each of its options with the keys that it sets."""
    lines = [f"# {group}", "", f"{purpose[0].upper()}{purpose[1:]}. [All groups](../options.md)."]
    for name in marked_options(CONF, group):
        lines += ["", f"## {group}={name.rstrip('*')}", "", *_told(group, name), *_keys(group, name.rstrip("*"))]
        lines += _definition(group, name.rstrip("*"))
    return _lines(lines)


def keys() -> str:
    """The keys of a run that belong to no group."""
    return _lines(block({f"{key}={plain_text(value)}": text for key, (value, text) in catalog.run_keys(CONF).items()}))


def block(rows: Mapping[str, str]) -> list[str]:
    """Words with what is said of them, as an indented block that no line of which is wider than a terminal."""
    width = min(max(map(len, rows), default=0), 44)
    lines: list[str] = []
    for word, said in rows.items():
        rest = wrap(said, COLUMNS - len(INDENT) - width - 2)
        beside = rest.pop(0) if rest and len(word) <= width else ""
        first, *more = wrap(word.replace(",", ", "), COLUMNS - 2 * len(INDENT)) if len(word) > COLUMNS - 4 else [word]
        lines += [f"{INDENT}{first:{width}}  {beside}".rstrip(), *(f"{2 * INDENT}{line}" for line in more)]
        lines += [f"{INDENT}{'':{width}}  {line}" for line in rest]
    return ["", *lines]


def pages() -> dict[Path, str]:
    """What the pages must hold."""
    made = {
        "options.md": {"groups": groups(), "keys": keys()},
        "compatibility.md": {
            "together": _lines(["", *compatibility_page.lines()]),
            "rows": _lines(["", *compatibility_page.row_lines(), ""]),
        },
        "reference.md": {"parts": _lines(["", *reference_page.lines()])},
    }
    docs = ROOT / "docs"
    purposes = catalog.purposes(CONF).items()
    of_groups = {docs / "options" / f"{group}.md": group_page(group, purpose) for group, purpose in purposes}
    return {docs / page: filled((docs / page).read_text(), tables) for page, tables in made.items()} | of_groups


def main(words: list[str]) -> int:
    """Writes or checks the pages; 1 where one is out of date."""
    for page in (ROOT / "docs" / "options").glob("*.md"):
        if page not in pages():
            raise SystemExit(f"{page.relative_to(ROOT)} is of a group that is no longer there; remove it")
    return write_or_check(pages(), words, "conf/", "options.py")


def write_or_check(made: Mapping[Path, str], words: list[str], source: str, script: str) -> int:
    """Writes the pages that are out of date, or with `--check` names them; 1 where it named one."""
    stale = {path: text for path, text in made.items() if not path.exists() or path.read_text() != text}
    for path, text in stale.items():
        if "--check" in words:
            print(f"{path.relative_to(ROOT)} does not show what {source} holds; run python scripts/{script}")
        else:
            write_atomically(path, text.encode())
    return int("--check" in words and bool(stale))


def _told(group: str, name: str) -> list[str]:
    said = catalog.description(CONF, group, name.rstrip("*"))
    return wrap(f"{said}{'' if said.endswith('.') else '.'}{' The default.' if name.endswith('*') else ''}", COLUMNS)


def _definition(group: str, option: str) -> list[str]:
    """What the module of a part says of it: its formula, its source, and where it deviates."""
    target = str(catalog.load(CONF / group / f"{option}.yaml").get("_target_", ""))
    file = ROOT.joinpath(*target.split(".")[:-1]).with_suffix(".py")
    if not file.is_file():
        return []
    paragraphs = (ast.get_docstring(ast.parse(file.read_text())) or "").split("\n\n")
    texts = [wrap(escape_around_code(" ".join(paragraph.split())), COLUMNS) for paragraph in paragraphs]
    return [line for text in texts for line in ("", *text)]


def _keys(group: str, option: str) -> list[str]:
    rows = option_keys(CONF, group, option)
    return block(rows) if rows else []


def filled(text: str, tables: Mapping[str, str]) -> str:
    for name, table in tables.items():
        marked = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
        text = marked.sub(lambda _, table=table: table, text)
    return text


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
