"""The names of a run's clients, where its tables have a column `name` behind the first one."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fedexp.files.run_tables import read_lines


def names_by_client(path: Path) -> dict[int, str]:
    """The name of each client in federation.csv or client_scores.csv; none where clients have numbers only."""
    lines = read_lines(path, ("client",))
    return {int(line["client"]): line["name"] for line in lines if [*line][1:2] == ["name"]}


def label(client: int, names: Mapping[int, str]) -> str:
    """What a client is called in tables and pictures: its name, or its number."""
    return names.get(client) or str(client)


def shared_names(folders: Sequence[Path]) -> dict[int, str]:
    """The names of the clients of several runs, if they are the same in all."""
    tables = [names_by_client(folder / "federation.csv") for folder in folders]
    return tables[0] if all(names == tables[0] for names in tables) else {}
