"""The columns of `--columns`, by their names in the tables."""

from collections.abc import Sequence

from fedexp.core.errors import ConfigError, did_you_mean
from fedexp.report.draw.quantity_names import heading

_REASONS = {"loss AUC": "it takes two evaluated rounds"}
Columns = tuple[str, ...]


def choose_columns(wishes: Sequence[str], names: Sequence[str], empty: Sequence[str]) -> tuple[Columns, Columns]:
    """The columns that there are, and those of which no run has a number; headings and capitals are understood, too.

    Raises:
        ConfigError: names all columns that no table knows, or says that none of them has a number.
    """
    by_text = {text.casefold(): name for name in (*empty, *names) for text in (heading(name), name)}
    missing = [name for name in dict.fromkeys(wishes) if name.casefold() not in by_text]
    names = list(dict.fromkeys(names))
    if len(missing) > 1:
        raise ConfigError(f"--columns: these runs have no columns {', '.join(missing)}; they have {', '.join(names)}")
    if missing:
        raise ConfigError(f"--columns: these runs have no column {missing[0]}; {did_you_mean(missing[0], names)}")
    columns = tuple(by_text[name.casefold()] for name in wishes)
    lacking = tuple(dict.fromkeys(name for name in columns if name not in names))
    if len(lacking) == len(set(columns)):
        raise ConfigError(f"--columns: {' '.join(map(describe_lack, lacking))} These runs have {', '.join(names)}")
    return tuple(name for name in columns if name in names), lacking


def describe_lack(name: str) -> str:
    """Why a column that was asked for is not shown."""
    return f"No run has a number for the column {name}{f': {_REASONS[name]}' if name in _REASONS else ''}."
