"""Clients on their way as a table of columns, as they are saved.

Legend: n clients.
"""

import numpy as np
import torch

from fedexp.parts import ConfigError, Memory
from fedexp.parts.pacing.timetable import Flight

KINDS = {"owner": np.int64, "begun": np.int64, "lost": np.int64}  # of a flight's columns; others are seconds


def flight_columns(flights: list[Flight]) -> dict[str, torch.Tensor]:
    """Clients on their way as a table of columns `[n]`."""
    rows = list(zip(*flights, strict=True)) or [()] * len(Flight._fields)
    return {
        name: torch.from_numpy(np.array(column, dtype=KINDS.get(name, np.float64)))
        for name, column in zip(Flight._fields, rows, strict=True)
    }


def read_flights(memory: Memory) -> list[Flight]:
    """The clients on their way that a memory holds; a column that earlier versions did not have is as if nobody set it.

    Raises:
        ConfigError: another column is missing.
    """
    if not memory:
        return []
    columns = []
    for name in Flight._fields:
        if name in memory["flight"]:
            columns.append(memory["flight"][name].tolist())
        elif name in Flight._field_defaults:
            columns.append([Flight._field_defaults[name]] * len(memory["flight"]["owner"]))
        else:
            raise ConfigError(
                f"the saved state does not say {name} of the clients that were training; resume with the fedexp that "
                "wrote it, or begin the run again"
            )
    return list(map(Flight._make, zip(*columns, strict=True)))
