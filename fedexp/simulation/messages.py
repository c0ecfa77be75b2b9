"""What clients send: one message each, in which the rows that the local rule adds stand behind the model's delta.

So codecs, attacks and privacy need not know of these rows: they change, clip and noise the message as one vector.
Legend: C participants, W entries of a message.
"""

from dataclasses import replace

import numpy as np

from fedexp.core.device_arrays import to_device
from fedexp.core.values import Layout, Uploads
from fedexp.simulation.personal_columns import private_columns
from fedexp.simulation.setup.experiment import Experiment


def message_size(exp: Experiment, layout: Layout) -> int:
    """The number of entries W of a message: the delta, and each row that the local rule adds."""
    return layout.size + layout.parameters * len(exp.local.extra_rows)


def private_message_columns(exp: Experiment, layout: Layout) -> np.ndarray:
    """The columns `[m]` of a message that never leave a client: those of the delta, and the same of each extra row."""
    private = private_columns(exp, layout)
    starts = layout.size + layout.parameters * np.arange(len(exp.local.extra_rows))
    return np.concatenate([private, *(start + private[private < layout.parameters] for start in starts)])


def open_messages(exp: Experiment, layout: Layout, uploads: Uploads) -> Uploads:
    """The uploads with delta and extra rows apart; nothing arrives in private columns, whatever was put there."""
    message, names = uploads.delta, exp.local.extra_rows
    private = private_message_columns(exp, layout)
    if len(private):
        columns = to_device(private, message.device)
        message = message.index_fill(1, columns, 0.0) if message[:, columns].any() else message
    delta, *extra = message.split([layout.size, *[layout.parameters] * len(names)], dim=1)
    return replace(uploads, delta=delta, extra=dict(zip(names, extra, strict=True)))
