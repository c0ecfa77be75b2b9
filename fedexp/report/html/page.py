"""The page put together: one file with its style, its script and its numbers; it may load nothing from anywhere."""

import json
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

from fedexp.core.files import write_atomically
from fedexp.report import page as paper
from fedexp.report import tables
from fedexp.report.grid import panels as grid_panels
from fedexp.report.html.figure import embedded, key
from fedexp.report.html.look import CROWD
from fedexp.report.html.panels import (
    clusters,
    federation,
    grid,
    learning,
    privacy,
    provenance,
    results,
    rounds,
    selections,
    simulated,
)
from fedexp.report.html.section import Section
from fedexp.report.html.svg import text
from fedexp.report.markup import Grid
from fedexp.report.methods import Method
from fedexp.report.runs import Run
from fedexp.report.tables import Table

_PANELS: tuple[Callable[[Sequence[Method]], Section | None], ...] = (
    learning.section,
    simulated.section,
    privacy.section,
    rounds.section,
    selections.section,
    federation.section,
    clusters.section,
    provenance.differences,
    provenance.runs,
)
_PARTS = ("page.css", "page.js", "hover.js")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def write(page: Path, methods: Sequence[Method], empty: Sequence[Path]) -> list[Table]:
    """Writes the page and returns its tables; `empty` are the folders left out."""
    made = tables.both(methods)
    parts = [panel(methods) for panel in _PANELS]
    sections = [*results.sections(made), *(part for part in parts if part is not None)]
    lead = text(paper.scope(methods))
    content = composed(_title(methods), lead, paper.doubts(methods, empty), sections, methods)
    write_atomically(page, content.encode())
    return made


def write_grid(page: Path, runs: Sequence[Run], by: tuple[str, str]) -> list[tuple[str, Grid]]:
    """Writes the page of final accuracies by two settings, and returns the titled tables."""
    found = grid_panels(runs, by)
    unfinished = sum(not run.finished for run in runs)
    lead = f"Final test accuracy of {len(runs) - unfinished} runs; a cell is the mean over its seeds, worst the lowest."
    doubts = [f"{unfinished} unfinished run(s) are left out."] if unfinished else []
    content = composed(f"{by[0]} by {by[1]}", text(lead), doubts, grid.sections(found, by), ())
    write_atomically(page, content.encode())
    return [(one.title or "Final test accuracy", one.grid("\\".join(by))) for one in found]


def composed(
    title: str, lead: str, doubts: Sequence[str], sections: Sequence[Section], methods: Sequence[Method]
) -> str:
    """The whole file."""
    links = "".join(f'<a href="#{part.name}">{text(part.title)}</a>' for part in sections)
    notes = "".join(f"<li>{text(note.replace('`', ''))}</li>" for note in doubts)
    warned = f'<details class="doubts" open><summary>Note</summary><ul>{notes}</ul></details>' if notes else ""
    names = embedded(json.dumps([method.label for method in methods], separators=(",", ":")))
    own = files("fedexp.report.html")
    style, script, hover = (own.joinpath(name).read_text(encoding="utf-8") for name in _PARTS)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{text(title)}</title>\n<style>\n{style}</style></head>\n<body>'
        f'<header><h1>{text(title)}</h1><p>{lead}</p><button type="button" id="theme">Light or dark</button></header>\n'
        f'<nav aria-label="Parts of the page">{links}</nav>\n<main>{warned}{_chooser(methods)}\n'
        f"{''.join(part.html() for part in sections)}</main>\n"
        f'<script type="application/json" id="methods">{names}</script>\n'
        f"<script>\n{script}{hover}</script></body></html>\n"
    )


def _title(methods: Sequence[Method]) -> str:
    return f"Report: {methods[0].label}" if len(methods) == 1 else f"Report of {len(methods)} methods"


def _chooser(methods: Sequence[Method]) -> str:
    """The common legend of very many methods."""
    if len(methods) <= CROWD:
        return ""
    keys = "".join(key(method) for method in methods)
    return (
        f'<details class="chooser"><summary>Choose among {len(methods)} methods</summary><div class="tools">'
        '<input type="search" placeholder="words of a name" aria-label="Find methods by words of their names">'
        '<button type="button" data-all="true">Show these</button>'
        '<button type="button" data-all="false">Hide these</button></div>'
        f'<div class="legend">{keys}</div></details>'
    )
