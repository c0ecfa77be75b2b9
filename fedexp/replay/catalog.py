"""The published tables that come with the package, by name."""

from pathlib import Path

from fedexp.config.location import conf_dir

ENDING = ".yml"


def tables_dir() -> Path:
    """The folder of the tables."""
    return conf_dir() / "replay"


def names() -> list[str]:
    """The names of all tables."""
    return sorted(path.stem for path in tables_dir().glob(f"*{ENDING}"))
