"""The report as one Markdown page beside a folder of its pictures and tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from fedexp.core.files import write_atomically
from fedexp.report import look, provenance, sections, tables
from fedexp.report.methods import Method
from fedexp.report.section import Picture, Section
from fedexp.report.tables import Table


@look.style()
def write(page: Path, methods: Sequence[Method], empty: Sequence[Path]) -> list[Table]:
    """Writes the page and its folder, the page last, and returns the tables; `empty` are the folders left out."""
    made = tables.both(methods)
    csv = {one.name: one.frame().to_csv(index=False) for one in made}
    lead = f"# Report\n\n{provenance.scope(methods)}\n"
    compose(page, lead, provenance.doubts(methods, empty), sections.of_methods(methods, made), csv)
    return made


def compose(page: Path, lead: str, doubts: Sequence[str], shown: Sequence[Section], csv: Mapping[str, str]) -> None:
    """Writes the folder of the page, then the page; a section that is `filed` has its first table as files."""
    folder, content = page.with_suffix(""), [lead, "".join(f"* {note}\n" for note in doubts)]
    for section in shown:
        for picture in section.pictures:
            picture.save(folder)
        texts = [f"## {section.title}\n", f"{section.note}\n" if section.note else ""]
        texts += [_figure(section, picture, folder.name) for picture in section.pictures]
        texts += [_table(caption, grid.markdown(), section.title) for caption, grid in section.tables]
        if section.filed:
            texts.append(_filed(folder, section, csv.get(section.name)))
        content.append("\n".join(text for text in texts if text))
    write_atomically(page, "\n".join(text for text in content if text).encode())


def _figure(section: Section, picture: Picture, folder: str) -> str:
    caption = f"\n{picture.caption}\n" if picture.caption else ""
    return f"![{section.title}]({quote(f'{folder}/{picture.name}.png')})\n{caption}"


def _table(caption: str, table: str, title: str) -> str:
    return table if caption == title else f"{caption}:\n\n{table}"


def _filed(folder: Path, section: Section, csv: str | None) -> str:
    """Writes the first table of a section as files, and says where they are."""
    _, grid = section.tables[0]
    written = {"csv": csv, "md": grid.markdown(), "tex": grid.latex()}
    kept = {ending: content for ending, content in written.items() if content is not None}
    for ending, content in kept.items():
        write_atomically(folder / f"{section.name}.{ending}", content.encode())
    links = ", ".join(f"[{ending}]({quote(f'{folder.name}/{section.name}.{ending}')})" for ending in kept)
    return f"Files: {links}\n"
