"""Clients that come and go: how many are there over simulated time, and who is away when, from presence.csv."""

from collections.abc import Iterator, Sequence

import numpy as np

from fedexp.files import run_tables
from fedexp.files.atomic import display_path
from fedexp.report.draw import band, bands, style
from fedexp.report.draw.bands import PlotSpec
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import PictureData, number_text, of_table
from fedexp.report.draw.section import Picture, Section, section
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run
from fedexp.report.read.site_names import label, names_by_client

COLUMNS = ("client", "from_s", "to_s", "present")
_LAWS = 3  # whose clients are drawn
_CLIENTS, _LINES = 20, 1040  # that a run writes at most
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
    strips, notes = [], [_NOTE, bands.NOTE]
    for number, (law, run) in enumerate(longest_by_law(moving)[:_LAWS]):
        lines, fault = read_spans(run)
        strips.append(_strips(number, law, run, lines))
        notes += [fault] if fault else []
    return section(
        "availability", "Availability", " ".join(notes), [bands.picture(_SHARE, moving, share_over_time), *strips]
    )


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


def read_spans(run: Run) -> tuple[np.ndarray, str]:
    """Client, beginning, end and presence of each line of presence.csv, float64 `[L, 4]`; none of an unfinished run.

    Nor of a table that no run writes; then a sentence says why.
    """
    path = run.folder / "presence.csv"
    table = run_tables.read_frame(path, ("client",))
    if not len(table) or any(name not in table for name in COLUMNS):
        return np.zeros((0, len(COLUMNS))), ""
    lines = table[list(COLUMNS)].to_numpy(dtype=np.float64)
    fault = _fault(lines)
    return (lines[:0], f"`{display_path(path)}` is left out: {fault}.") if fault else (lines, "")


def _fault(lines: np.ndarray) -> str:
    """What no run writes; else empty."""
    client, from_s, to_s, _ = lines.T
    if not (np.isfinite(lines).all() and (from_s >= 0).all() and (from_s < to_s).all()):
        return "spans must begin at 0 or later and before they end, in numbers"
    if len(lines) > _LINES or len(np.unique(client)) > _CLIENTS:
        return f"it must have at most {_LINES:,} lines of {_CLIENTS} clients, got {len(lines):,}"
    return ""


def _strips(number: int, law: str, run: Run, table: np.ndarray) -> Picture | None:
    if not len(table):
        return None
    clients, here = np.unique(table[:, 0]), table[table[:, 3] == 1]
    title = f"Who is there when: {law}"
    figure, axes = style.row_canvas(title, "Simulated seconds", len(clients), 1.1)
    rows, from_s, to_s = np.searchsorted(clients, here[:, 0]), here[:, 1], here[:, 2]
    axes.barh(rows, to_s - from_s, left=from_s, height=0.7, color=style.COLORS[0], linewidth=0)
    names = names_by_client(run.folder / "federation.csv")
    style.name_rows(axes, [label(int(client), names) for client in clients])
    axes.set_xlim(0, float(table[:, 2].max()))
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


def _strips_data(table: np.ndarray, names: dict[int, str]) -> PictureData:
    rows = list(_client_rows(table, names))
    end_s = number_text(float(table[:, 2].max()))
    shares = [float(row[2]) for row in rows]
    text = f"{len(rows)} clients over {end_s} s are there for {min(shares):.2f} to {max(shares):.2f} of the time."
    return of_table(Grid(("client", "times away", "share there"), rows), "clients", text)


def _client_rows(table: np.ndarray, names: dict[int, str]) -> Iterator[list[str]]:
    for client in np.unique(table[:, 0]):
        _, from_s, to_s, present = table[table[:, 0] == client].T
        share = (to_s - from_s)[present == 1].sum() / (to_s - from_s).sum()
        yield [label(int(client), names), str(int((present == 0).sum())), f"{share:.3f}"]
