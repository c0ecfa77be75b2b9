"""Personal columns of a row: a client goes on from its own values in them, not from the server's.

The model names some (statistics of normalisation, with `model.buffers=local`). These are sent all the same, so that the
global model has statistics. The local rule names others (`local=personal_layer`). These never leave their client:
nothing arrives in them, whatever an attack or noise put there, and the global model keeps its first values in them.

Legend: n clients, D entries of a row.
"""

import numpy as np
import torch

from fedexp.core.client_rows import ClientRows
from fedexp.core.values import Layout, Memory, Trained, Uploads, finite
from fedexp.simulation.experiment import Experiment


def kept_columns(exp: Experiment, layout: Layout) -> np.ndarray:
    """The personal columns `[m]`, ascending."""
    return np.union1d(exp.model.personal(layout), exp.local.keeps(layout))


def restored(
    exp: Experiment, layout: Layout, owner: np.ndarray, rows: torch.Tensor, memory: dict[str, Memory]
) -> torch.Tensor:
    """`rows [n, D]` with the clients' saved personal columns put back; rows of clients without any stay."""
    columns = kept_columns(exp, layout)
    return ClientRows.load(memory.get("personal", {}), len(columns), rows).restore(owner, rows, columns)


def keep(exp: Experiment, layout: Layout, trained: Trained, memory: Memory) -> Memory:
    """Saves the clients' personal columns after a round; a row that is not finite leaves what was saved before."""
    rows = trained.rows[:, torch.from_numpy(kept_columns(exp, layout)).to(trained.rows.device)]
    held = ClientRows.load(memory, rows.shape[1], rows)
    whole = np.flatnonzero(finite(trained.rows) if rows.shape[1] else np.zeros(len(rows), dtype=bool))
    return held.put(trained.owner[whole], rows[torch.from_numpy(whole).to(rows.device)]).save()


def without_unsent(uploads: Uploads, columns: np.ndarray) -> Uploads:
    """The uploads with zeros in the private `columns [m]`, which never leave a client."""
    place = torch.from_numpy(columns).to(uploads.delta.device)
    if not uploads.delta[:, place].any():
        return uploads
    return uploads.with_delta(uploads.delta.index_fill(1, place, 0.0))
