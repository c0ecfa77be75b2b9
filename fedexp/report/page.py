"""The report as one Markdown page beside a folder of its pictures and tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from fedexp.core.files import write_atomically
from fedexp.report import look, parts, provenance, tables
from fedexp.report.methods import Method
from fedexp.report.part import Part, Picture
from fedexp.report.tables import Table


@look.style()
def write(page: Path, methods: Sequence[Method], empty: Sequence[Path]) -> list[Table]:
    """Writes the page and its folder, the page last, and returns the tables; `empty` are the folders left out."""
    made = tables.both(methods)
    csv = {one.name: one.frame().to_csv(index=False) for one in made}
    lead = f"# Report\n\n{provenance.scope(methods)}\n"
    compose(page, lead, provenance.doubts(methods, empty), parts.of_methods(methods, made), csv)
    return made


def compose(page: Path, lead: str, doubts: Sequence[str], shown: Sequence[Part], csv: Mapping[str, str]) -> None:
    """Writes the folder of the page, then the page; parts with a table of results have it as files too."""
    folder, sections = page.with_suffix(""), [lead, "".join(f"* {note}\n" for note in doubts)]
    for part in shown:
        for picture in part.pictures:
            picture.save(folder)
        texts = [f"## {part.title}\n", f"{part.note}\n" if part.note else ""]
        texts += [_figure(part, picture, folder.name) for picture in part.pictures]
        texts += [_table(caption, grid.markdown(), part.title) for caption, grid in part.tables]
        if part.filed:
            texts.append(_filed(folder, part, csv.get(part.name)))
        sections.append("\n".join(text for text in texts if text))
    write_atomically(page, "\n".join(section for section in sections if section).encode())


def _figure(part: Part, picture: Picture, folder: str) -> str:
    caption = f"\n{picture.caption}\n" if picture.caption else ""
    return f"![{part.title}]({quote(f'{folder}/{picture.name}.png')})\n{caption}"


def _table(caption: str, table: str, title: str) -> str:
    return table if caption == title else f"{caption}:\n\n{table}"


def _filed(folder: Path, part: Part, csv: str | None) -> str:
    """Writes the first table of a part as files, and says where they are."""
    _, grid = part.tables[0]
    written = {"csv": csv, "md": grid.markdown(), "tex": grid.latex()}
    kept = {ending: content for ending, content in written.items() if content is not None}
    for ending, content in kept.items():
        write_atomically(folder / f"{part.name}.{ending}", content.encode())
    links = ", ".join(f"[{ending}]({quote(f'{folder.name}/{part.name}.{ending}')})" for ending in kept)
    return f"Files: {links}\n"
