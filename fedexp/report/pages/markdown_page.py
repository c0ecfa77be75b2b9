"""The report as one Markdown page beside a folder of its pictures and tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from fedexp.report.draw import style
from fedexp.report.draw.markdown import Grid, escape_around_code, escape_markdown
from fedexp.report.draw.section import Picture, Section
from fedexp.report.pages import latex_page, sections
from fedexp.report.pages.write_page import write_page
from fedexp.report.read.methods import Method
from fedexp.report.topics import provenance, setup, tables
from fedexp.report.topics.grid import notes
from fedexp.report.topics.grid.panel import panels
from fedexp.report.topics.setup import Fact
from fedexp.report.topics.tables import Table, View

_PICTURES = ("png", "pdf", "svg")


@style.style()
def write(page: Path, methods: Sequence[Method], caveats: Sequence[str], view: View) -> list[Table]:
    """Writes the page and its folder, the page last, and returns the tables."""
    result_tables = tables.make_tables(methods, view)
    csv = {table.name: table.frame().to_csv(index=False) for table in result_tables}
    outcome = escape_markdown(setup.outcome(result_tables))
    lead = f"# Report\n\n{provenance.count_text(methods)}\n\n{_facts_list(setup.facts(methods))}\n{outcome}\n"
    compose(page, lead, caveats, sections.method_sections(methods, result_tables), csv)
    return result_tables


@style.style()
def write_grid(
    page: Path, methods: Sequence[Method], by: tuple[str, str], caveats: Sequence[str], view: View
) -> list[tuple[str, Grid]]:
    """Writes the page of final accuracies by two settings, and returns the titled tables."""
    runs = [run for method in methods for run in method.every_run]
    shown_panels = panels(runs, by, view)
    shown = sections.grid_sections(shown_panels, by)
    facts = [*notes.facts(runs, by), *setup.shared_facts(methods), *setup.command_facts(methods)]
    lead = f"# {by[0]} by {by[1]}\n\n{escape_markdown(notes.explain(runs, shown_panels[0]))}\n\n{_facts_list(facts)}\n"
    csv = {
        section.name: panel.frame(by).to_csv(index=False) for section, panel in zip(shown, shown_panels, strict=True)
    }
    compose(page, lead, caveats, shown, csv)
    return [table for section in shown for table in section.tables]


def _facts_list(facts: Sequence[Fact]) -> str:
    return "".join(f"* {term}: {_fact_text(term, text)}\n" for term, text in facts)


def _fact_text(term: str, text: str) -> str:
    """A command is code, so that it can be copied."""
    is_code = term == setup.COMMAND and "`" not in text
    return escape_around_code(f"`{text}`") if is_code else escape_markdown(text)


def compose(page: Path, lead: str, caveats: Sequence[str], shown: Sequence[Section], csv: Mapping[str, str]) -> None:
    """Writes the folder of the page, then the page; a section `as_files` has its tables as files, too."""
    folder, content = page.with_suffix(""), [lead, "".join(f"* {escape_around_code(note)}\n" for note in caveats)]
    for section in shown:
        for picture in section.pictures:
            picture.save(folder, _PICTURES)
        texts = [
            f"## {escape_markdown(section.title)}\n",
            f"{escape_around_code(section.note)}\n" if section.note else "",
        ]
        texts += [_figure(picture, folder.name) for picture in section.pictures]
        texts += [_table(caption, grid.markdown(), section.title) for caption, grid in section.tables]
        if section.as_files:
            covered = _file_names(section)[1:] if section.name in csv else []  # its file has the numbers of all
            texts += [
                _write_table_files(
                    folder, name, grid, csv.get(name, grid.csv() if name not in covered else None), section.note
                )
                for name, (_, grid) in zip(_file_names(section), section.tables, strict=True)
            ]
        content.append("\n".join(text for text in texts if text))
    write_page(page, "\n".join(text for text in content if text))


def _figure(picture: Picture, folder: str) -> str:
    caption = f"\n{escape_around_code(picture.caption)}\n" if picture.caption else ""
    alternative = escape_markdown(f"{picture.title}: {picture.data.text}").replace("]", "\\]")
    files = ", ".join(f"[{ending}]({quote(f'{folder}/{picture.name}.{ending}')})" for ending in _PICTURES[1:])
    return f"![{alternative}]({quote(f'{folder}/{picture.name}.png')})\n\nAs {files}.\n{caption}"


def _table(caption: str, table: str, title: str) -> str:
    return table if caption == title else f"{escape_markdown(caption)}:\n\n{table}"


def _file_names(section: Section) -> list[str]:
    """The names of the tables' files, the first that of the section."""
    return [section.name, *(f"{section.name}_{number}" for number in range(2, len(section.tables) + 1))]


def _write_table_files(folder: Path, name: str, grid: Grid, csv: str | None, note: str) -> str:
    """Writes a table as files, in LaTeX with the note as comments, and says where they are."""
    written = {"csv": csv, "md": grid.markdown(), "tex": f"{grid.latex()}{latex_page.comments([note])}"}
    contents = {ending: content for ending, content in written.items() if content is not None}
    for ending, content in contents.items():
        write_page(folder / f"{name}.{ending}", content)
    links = ", ".join(f"[{ending}]({quote(f'{folder.name}/{name}.{ending}')})" for ending in contents)
    return f"Files: {links}\n"
