"""The report as one Markdown page beside a folder of its pictures and tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from fedexp.files.atomic import write_atomically
from fedexp.report.draw import style
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.section import Picture, Section
from fedexp.report.pages import sections
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run
from fedexp.report.topics import grid, provenance, tables
from fedexp.report.topics.tables import Table


@style.style()
def write(page: Path, methods: Sequence[Method], empty: Sequence[Path]) -> list[Table]:
    """Writes the page and its folder, the page last, and returns the tables; `empty` are the folders left out."""
    result_tables = tables.make_tables(methods)
    csv = {table.name: table.frame().to_csv(index=False) for table in result_tables}
    lead = f"# Report\n\n{provenance.count_text(methods)}\n"
    compose(page, lead, provenance.caveats(methods, empty), sections.method_sections(methods, result_tables), csv)
    return result_tables


@style.style()
def write_grid(page: Path, runs: Sequence[Run], by: tuple[str, str]) -> list[tuple[str, Grid]]:
    """Writes the page of final accuracies by two settings, and returns the titled tables."""
    shown = sections.grid_sections(grid.panels(runs, by), by)
    compose(page, f"# {by[0]} by {by[1]}\n\n{grid.explain(runs)}\n", grid.caveats(runs), shown, {})
    return [table for section in shown for table in section.tables]


def compose(page: Path, lead: str, caveats: Sequence[str], shown: Sequence[Section], csv: Mapping[str, str]) -> None:
    """Writes the folder of the page, then the page; a section whose tables are files has its first table as files."""
    folder, content = page.with_suffix(""), [lead, "".join(f"* {note}\n" for note in caveats)]
    for section in shown:
        for picture in section.pictures:
            picture.save(folder)
        texts = [f"## {section.title}\n", f"{section.note}\n" if section.note else ""]
        texts += [_figure(section, picture, folder.name) for picture in section.pictures]
        texts += [_table(caption, grid.markdown(), section.title) for caption, grid in section.tables]
        if section.as_files:
            texts.append(_write_table_files(folder, section, csv.get(section.name)))
        content.append("\n".join(text for text in texts if text))
    write_atomically(page, "\n".join(text for text in content if text).encode())


def _figure(section: Section, picture: Picture, folder: str) -> str:
    caption = f"\n{picture.caption}\n" if picture.caption else ""
    return f"![{section.title}]({quote(f'{folder}/{picture.name}.png')})\n{caption}"


def _table(caption: str, table: str, title: str) -> str:
    return table if caption == title else f"{caption}:\n\n{table}"


def _write_table_files(folder: Path, section: Section, csv: str | None) -> str:
    """Writes the first table of a section as files, and says where they are."""
    _, grid = section.tables[0]
    written = {"csv": csv, "md": grid.markdown(), "tex": grid.latex()}
    contents = {ending: content for ending, content in written.items() if content is not None}
    for ending, content in contents.items():
        write_atomically(folder / f"{section.name}.{ending}", content.encode())
    links = ", ".join(f"[{ending}]({quote(f'{folder.name}/{section.name}.{ending}')})" for ending in contents)
    return f"Files: {links}\n"
