"""The page put together: one file with its style, its script and its drawings; it may load nothing from anywhere."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from fedexp.report.draw import style
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.section import Section
from fedexp.report.html.section import legend_key, section_html, with_code
from fedexp.report.pages import sections
from fedexp.report.pages.write_page import write_page
from fedexp.report.read.methods import Method
from fedexp.report.topics import provenance, setup, tables
from fedexp.report.topics.grid import notes
from fedexp.report.topics.grid.panel import panels
from fedexp.report.topics.setup import Fact
from fedexp.report.topics.tables import Table, View

_LONG, _LONG_CLASS = 48, ' class="long"'  # letters of a fact that has a row to itself
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


@style.style()
def write(page: Path, methods: Sequence[Method], caveats: Sequence[str], view: View) -> list[Table]:
    """Writes the page and returns its tables."""
    result_tables = tables.make_tables(methods, view)
    title = f"Report: {methods[0].label}" if len(methods) == 1 else f"Report of {len(methods)} methods"
    head = _head(title, provenance.count_text(methods))
    introduction = _summary_html(setup.facts(methods), setup.outcome(result_tables))
    introduction += _caveats_html(caveats) + _chooser(methods)
    write_page(page, _page_html(head, introduction, sections.method_sections(methods, result_tables)))
    return result_tables


@style.style()
def write_grid(
    page: Path, methods: Sequence[Method], by: tuple[str, str], caveats: Sequence[str], view: View
) -> list[tuple[str, Grid]]:
    """Writes the page of final accuracies by two settings, and returns the titled tables."""
    runs = [run for method in methods for run in method.every_run]
    shown_panels = panels(runs, by, view)
    shown = sections.grid_sections(shown_panels, by)
    head = _head(f"{by[0]} by {by[1]}", notes.explain(runs, shown_panels[0]))
    introduction = _facts_html(
        [*notes.facts(runs, by), *setup.shared_facts(methods), *setup.command_facts(methods)]
    ) + _caveats_html(caveats)
    write_page(page, _page_html(head, introduction, shown))
    return [table for section in shown for table in section.tables]


def _page_html(head: str, introduction: str, shown: Sequence[Section]) -> str:
    """The whole file."""
    links = "".join(f'<a href="#{section.name}">{escape(section.title)}</a>' for section in shown)
    body = "".join(map(section_html, shown))
    return (
        f'<!doctype html>\n<html lang="en">{head}<nav aria-label="Parts of the page">{links}</nav>\n'
        f"<main>{introduction}\n{body}</main>\n<script>\n{_file('page.js')}</script></body></html>\n"
    )


def _head(title: str, lead: str) -> str:
    """Returns the HTML of everything above the links to the sections."""
    escaped_title = escape(title)
    button = '<button type="button" id="theme">Light or dark</button>'
    bar = f"<header><h1>{escaped_title}</h1><p>{escape(lead)}</p>{button}</header>"
    return (
        f'<head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escaped_title}</title>\n<style>\n{_file("page.css")}</style></head>\n'
        f"<body>{bar}\n"
    )


def _file(name: str) -> str:
    return files("fedexp.report.html").joinpath(name).read_text(encoding="utf-8")


def _summary_html(facts: Sequence[Fact], outcome: str) -> str:
    """What was run and what came out."""
    unbroken = outcome.replace(" ± ", "\xa0±\xa0")
    return f'{_facts_html(facts)}<p class="outcome">{escape(unbroken)}</p>'


def _facts_html(facts: Sequence[Fact]) -> str:
    entries = (
        f"<div{_LONG_CLASS if len(text) > _LONG else ''}><dt>{escape(term)}</dt><dd>{_fact_html(term, text)}</dd></div>"
        for term, text in facts
    )
    return f'<dl class="facts">{"".join(entries)}</dl>'


def _fact_html(term: str, text: str) -> str:
    return f"<code>{escape(text)}</code>" if term == setup.COMMAND else escape(text)


def _caveats_html(caveats: Sequence[str]) -> str:
    lines = "".join(f"<li>{with_code(note)}</li>" for note in caveats)
    return f'<details class="doubts" open><summary>Note</summary><ul>{lines}</ul></details>' if lines else ""


def _chooser(methods: Sequence[Method]) -> str:
    """The common legend of very many methods."""
    if len(methods) <= style.CROWD:
        return ""
    keys = "".join(legend_key(method) for method in methods)
    return (
        f'<details class="chooser"><summary>Choose among {len(methods)} methods</summary><div class="tools">'
        '<input type="search" placeholder="words of a name" aria-label="Find methods by words of their names">'
        '<button type="button" data-all="true">Show these</button>'
        '<button type="button" data-all="false">Hide these</button></div>'
        f'<div class="legend">{keys}</div></details>'
    )
