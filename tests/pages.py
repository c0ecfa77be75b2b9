"""The pages that a reader sees, and the commands on them."""

import re
from pathlib import Path

HOUSE = Path(__file__).parents[1]
PAGES = [HOUSE / "README.md", *sorted((HOUSE / "docs").glob("*.md"))]
GUIDE = HOUSE / "docs" / "parts.md"
STUDIES = sorted((HOUSE / "scripts" / "studies").rglob("*.md"))
BLOCK = re.compile(r"^```(?:python|yaml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`((?:mine|sparse|fedexp|conf|tests|\.github)/[\w/.]+\.(?:py|ya?ml))`")
INDENTED = re.compile(r"^    (fedexp [^\n]*)", re.MULTILINE)
INLINE = re.compile(r"`(fedexp [^`]+)`")


def name(page: Path) -> str:
    return str(page.relative_to(HOUSE))


def commands(page: Path) -> list[str]:
    """Every `fedexp ...` of a page, without its comment; those with dots show a form, no command."""
    text = page.read_text().replace("\\\n", " ")
    found = [*INDENTED.findall(text), *(" ".join(words.split()) for words in INLINE.findall(BLOCK.sub("", text)))]
    plain = (re.split(r"\s+(?:#|\||&&)\s", command)[0].strip() for command in found)
    return [command for command in plain if "..." not in command]


def files(text: str) -> dict[str, str]:
    """The files of a chapter: each block of code belongs to the last file named before it."""
    return {FILE.findall(text[: block.start()])[-1]: block[1] for block in BLOCK.finditer(text)}


def write(folder: Path, contents: dict[str, str]) -> None:
    for file, content in contents.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(content)
