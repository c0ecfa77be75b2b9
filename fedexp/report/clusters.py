"""`clusters.png` and `client_accuracy.png` of a run folder, from the tables in it."""

from pathlib import Path

from fedexp.core import csv_table
from fedexp.report import client_accuracy, membership

EVENTS = ("round", "event", "client", "cluster")


def draw(folder: Path, clients: int, rounds: int, prefix: str = "", into: Path | None = None) -> list[str]:
    """Draws what the folder has tables for and returns the names, `prefix` before them, without their ending."""
    into, drawn = into or folder, []
    if (folder / "clusters.csv").is_file():
        events = csv_table.frame(folder / "clusters.csv", EVENTS)
        drawn.append(f"{prefix}clusters")
        clients = max(clients, 1 + max(events["client"].tolist())) if len(events) else clients
        membership.draw(into / f"{drawn[-1]}.png", events, clients, rounds)
    if (folder / "client_accuracy.csv").is_file():
        drawn.append(f"{prefix}client_accuracy")
        client_accuracy.draw(into / f"{drawn[-1]}.png", csv_table.frame(folder / "client_accuracy.csv"))
    return drawn
