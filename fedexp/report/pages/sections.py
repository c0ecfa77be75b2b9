"""The sections of a report in their order, the same for every page; what has nothing to show is left out."""

from collections.abc import Sequence

import numpy as np

from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.section import Section
from fedexp.report.read.methods import Method
from fedexp.report.topics import (
    clusters,
    confusion_matrix,
    federation,
    learning,
    privacy,
    provenance,
    rounds,
    selections,
)
from fedexp.report.topics.clock import presence, simulated, staleness
from fedexp.report.topics.grid.panel import Panel
from fedexp.report.topics.grid.picture import panel_picture
from fedexp.report.topics.tables import Table

_READING = {
    "results": (
        "Mean ± {spread}; bold: the best mean of a column among methods all of whose runs have the number, but where "
        "all are equal and for seconds of this computer. Loss AUC is the area under the test loss over rounds "
        "(trapezoid rule): lower is better. RoA@x is the number of rounds to a target: the first round in which the "
        "main metric on the test data is x or better. ToA@x is the number of seconds to a target. (k/n): only k of the "
        "n runs got there, and the mean is over those. Selections are summed over the rounds. Epsilon, if any, is the "
        "federation's at the end."
    ),
    "metrics": "The other metrics of `evaluation.metrics`, after the last round on the test data.",
    "at_clients": (
        "After the last round, on what each client held out or its own test examples: the mean over clients, and the "
        "means of their worst and best tenths; clients where the metric is undefined, as the AUROC of one class, are "
        "left out. Personal: of the model that each client uses, its own if it has one. "
        "Site: of the global model; where every client trains alone there is none."
    ),
    "sites": (
        "After the last round, on what each site held out or its own test examples, of the model that the site uses: "
        "its own if it has one, else the global one. Mean ± {spread}, which does not say how sure a score of so few "
        "examples is; bold: the best mean of a site among methods that have a score in all seeds. (k/n): only in k of "
        "n runs the site has a score, which it has not where the metric is undefined, such as an AUROC of one class. "
        "Scored on and trained on: examples; of two classes, of them: those of the second one among the examples that "
        "are scored."
    ),
    "simulated": "Seconds of the simulated clock from the first round on; otherwise as above.",
}
_CLOSING = {
    "differences": (
        "Every part and key in which the methods differ; -: the method has no such key; (idle): the key does nothing "
        "in it. Keys that are idle in all are left out."
    )
}
_PANELS = (
    *(learning, confusion_matrix, simulated, staleness, presence, privacy, rounds, selections, federation),
    clusters,
)


def method_sections(methods: Sequence[Method], result_tables: Sequence[Table]) -> list[Section]:
    """The tables of results, the pictures, what differs, and the runs."""
    first = [
        Section(
            name=table.name,
            title=table.title,
            note=_READING[table.name].replace("{spread}", table.view.spread),
            tables=grids,
            as_files=True,
        )
        for table in result_tables
        if (grids := table.grids())
    ]
    drawn = [module.build_section(methods) for module in _PANELS]
    differing = provenance.differences_table(methods)
    last = [("differences", "Differences", differing), ("runs", "Runs", provenance.runs_table(methods))]
    closing_sections = [
        Section(name=name, title=title, note=_CLOSING.get(name, ""), tables=[(title, grid)], as_files=True)
        for name, title, grid in last
        if grid is not None
    ]
    return [*first, *(part for part in drawn if part is not None), *closing_sections]


def grid_sections(panels: Sequence[Panel], by: tuple[str, str]) -> list[Section]:
    """A heat map and a table for each panel of two settings."""
    sections = []
    values = np.concatenate([panel.values.ravel() for panel in panels])
    scale = float(np.nanmin(values)), float(np.nanmax(values))  # one for all, so that panels can be compared
    for number, (panel, table) in enumerate(zip(panels, titled_tables(panels, by), strict=True), start=1):
        name = f"grid_{number}"
        pictures = [panel_picture(name, panel, by, scale)]
        sections.append(Section(name=name, title=table[0], pictures=pictures, tables=[table], as_files=True))
    return sections


def titled_tables(panels: Sequence[Panel], by: tuple[str, str]) -> list[tuple[str, Grid]]:
    """The table of each panel of two settings, with its title."""
    return [(panel.title or f"Final test {panel.measure}", panel.grid(" / ".join(by))) for panel in panels]
