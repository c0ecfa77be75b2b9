"""Clients that come and go: how many are there over simulated time, and who is away when, from presence.csv."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedexp.files import run_tables
from fedexp.report.draw import band, bands, style
from fedexp.report.draw.bands import PlotSpec
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import PictureData, number_text, of_table
from fedexp.report.draw.section import Picture, Section, section
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run
from fedexp.report.read.site_names import label, names_by_client

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("client", "from_s", "to_s", "present")
_LAWS = 3  # whose clients are drawn
_SHARE = PlotSpec(
    name="presence",
    title="Clients that are there",
    vertical="Share of the clients",
    horizontal="Simulated seconds",
    zero=True,
)
_NOTE = (
    "Who is there depends on the law, the seed and the time alone, so methods with the same of them meet the same "
    "absences. The share is that at the beginning of each step."
)


def build_section(methods: Sequence[Method]) -> Section | None:
    """Of the methods whose clients come and go."""
    moving = [method for method in methods if "availability.present" in method.runs[0].metrics]
    if not moving:
        return None
    strips = [_strips(number, law, run) for number, (law, run) in enumerate(longest_by_law(moving)[:_LAWS])]
    pictures = [bands.picture(_SHARE, moving, share_over_time), *strips]
    return section("availability", "Availability", f"{_NOTE} {bands.NOTE}", pictures)


def share_over_time(run: Run) -> band.Curve:
    """When each step began, in simulated seconds, and the share of the clients that were there."""
    ends_s = run.column("sim_s")
    begins_s = np.concatenate([[0.0], ends_s[:-1]]) + run.column("availability.waited_s")
    return band.finite_points(begins_s, run.column("availability.present") / max(1, len(run.selections)))


def longest_by_law(methods: Sequence[Method]) -> list[tuple[str, Run]]:
    """The first runs of methods, of each law, its numbers and seed the longest one, with the name of the law."""
    longest: dict[tuple, tuple[str, Run]] = {}
    for run in (method.runs[0] for method in methods):
        keys = tuple(sorted((key, str(value)) for key, value in run.config.items() if key.startswith("availability.")))
        law = run.choices.get("availability") or "availability"
        if (best := longest.get((keys, run.seed))) is None or run.column("sim_s")[-1] > best[1].column("sim_s")[-1]:
            longest[keys, run.seed] = law, run
    return list(longest.values())


def spans(run: Run) -> "pd.DataFrame":
    """The lines of presence.csv; none of an unfinished run."""
    table = run_tables.read_frame(run.folder / "presence.csv", ("client",))
    return table if set(COLUMNS) <= set(table) else table[:0]


def _strips(number: int, law: str, run: Run) -> Picture | None:
    table = spans(run)
    if not len(table):
        return None
    clients, here = np.unique(table["client"].to_numpy(dtype=np.int64)), table[table["present"] == 1]
    title = f"Who is there when: {law}"
    figure, axes = style.row_canvas(title, "Simulated seconds", len(clients), 1.1)
    rows = np.searchsorted(clients, here["client"].to_numpy(dtype=np.int64))
    from_s, to_s = (here[name].to_numpy(dtype=np.float64) for name in ("from_s", "to_s"))
    axes.barh(rows, to_s - from_s, left=from_s, height=0.7, color=style.COLORS[0], linewidth=0)
    names = names_by_client(run.folder / "federation.csv")
    style.name_rows(axes, [label(int(client), names) for client in clients])
    axes.set_xlim(0, float(table["to_s"].max()))
    axes.set_ylabel("Client")
    everybody = len(run.selections)
    chosen = f"{len(clients)} of {everybody:,} clients, chosen evenly" if len(clients) < everybody else "All clients"
    return Picture(
        name=f"presence_{number}",
        title=title,
        figure=figure,
        data=_strips_data(table, names),
        caption=f"{chosen}. A client is there where it has a bar.",
        legend=False,
    )


def _strips_data(table: "pd.DataFrame", names: dict[int, str]) -> PictureData:
    rows = list(_client_rows(table, names))
    end_s = number_text(float(table["to_s"].max()))
    shares = [float(row[2]) for row in rows]
    text = f"{len(rows)} clients over {end_s} s are there for {min(shares):.2f} to {max(shares):.2f} of the time."
    return of_table(Grid(("client", "times away", "share there"), rows), "clients", text)


def _client_rows(table: "pd.DataFrame", names: dict[int, str]) -> Iterator[list[str]]:
    for client, lines in table.groupby("client"):
        seconds = (lines["to_s"] - lines["from_s"]).to_numpy(dtype=np.float64)
        present = lines["present"].to_numpy() == 1
        yield [label(int(client), names), str(int((~present).sum())), f"{seconds[present].sum() / seconds.sum():.3f}"]
