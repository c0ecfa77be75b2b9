"""Personal columns of a row: a client goes on from its own values in them, not from the server's.

The model names some (statistics of normalisation, with `model.buffers=local`). These are sent all the same, so that the
global model has statistics. The local rule names others (`local=personal_layer`). These never leave their client:
nothing arrives in them, whatever an attack or noise put there, and the global model keeps its first values in them.
With `scenario.training=local` these are all columns.

Legend: n clients, D entries of a row.
"""

import numpy as np
import torch

from fedexp.core.client_rows import ClientRows
from fedexp.core.device_arrays import finite, to_device
from fedexp.core.values import Layout, Memory, Trained
from fedexp.simulation.setup.experiment import Experiment


def private_columns(exp: Experiment, layout: Layout) -> np.ndarray:
    """The columns `[m]` that never leave their client, ascending; none where one client has the examples of all."""
    if exp.scenario.pools_data:
        return np.zeros(0, np.int64)
    return np.arange(layout.size) if exp.scenario.trains_alone else exp.local.private_columns(layout)


def personal_columns(exp: Experiment, layout: Layout) -> np.ndarray:
    """The personal columns `[m]`, ascending."""
    named, private = exp.model.personal(layout), private_columns(exp, layout)
    if not len(named):
        return private
    is_personal = np.zeros(layout.size, dtype=bool)  # in a tenth of the time of np.union1d
    is_personal[named] = is_personal[private] = True
    return np.flatnonzero(is_personal)


def restore_personal(
    exp: Experiment, layout: Layout, owner: np.ndarray, rows: torch.Tensor, memory: dict[str, Memory]
) -> torch.Tensor:
    """`rows [n, D]` with the clients' saved personal columns put back; rows of clients without any stay."""
    columns = personal_columns(exp, layout)
    if not len(columns):
        return rows
    return ClientRows.load(memory.get("personal", {}), len(columns), rows).restore(owner, rows, columns)


def save_personal(exp: Experiment, layout: Layout, trained: Trained, memory: Memory) -> Memory:
    """Saves the clients' personal columns after a round, but not of who broke off, or whose row is not finite."""
    columns, device = personal_columns(exp, layout), trained.rows.device
    saved_rows = ClientRows.load(memory, len(columns), trained.rows)
    if len(columns):
        rows = trained.rows[:, to_device(columns, device)]
        saved_rows = saved_rows.with_valid_rows(trained.owner, rows, finite(trained.rows) & trained.completed)
    return saved_rows.save()
