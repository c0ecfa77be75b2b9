"""The traffic of a round: models down, updates up, and messages besides training.

A client that judges a model gets it, and answers with a loss unless it judges for itself; one that has judged models
and then begins to train has the one that it trains already, and a participant that tells the loss of what it trains
needs no other. A client that tunes a model gets it and sends what it made of it. What the server trains on itself has
been sent to it by clients, label included. Speeds and class counts, a few bytes a client, are not counted. What one
update costs follows from codec and aggregator (`Experiment.upload_bytes`).

Losses and tuned models are answers and no messages of a round: no codec, attack or noise changes them. Where privacy is
guaranteed, parts that ask for them are refused (`reveals`).
"""

import numpy as np

from fedexp.core.values import LABEL_BYTES, SERVER, Plan
from fedexp.simulation.context import RoundContext, extra_messages
from fedexp.simulation.setup.experiment import Experiment

ANSWER_BYTES = 4  # a loss


def megabytes(exp: Experiment, ctx: RoundContext, plan: Plan, arrived: np.ndarray) -> dict[str, float]:
    """The megabytes of a round: down to all that began in it, and up from those whose uploads arrived.

    `arrived [n]` holds the owners of the uploads that came and count. Where the data of all is in one place nothing is
    sent.
    """
    if exp.scenario.pools_data:
        return {"mb_down": 0.0, "mb_up": 0.0}
    extra = extra_messages(ctx)
    entries, evaluators = ctx.layout.size - len(ctx.traffic.private_columns), extra.evaluators
    message = entries + len(ctx.traffic.extra_rows) * ctx.traffic.sent_entries
    extra_downloads = sum(map(len, evaluators)) + extra.fine_tuned
    arrivals = extra.arrivals
    assert arrivals is not None, "a round's messages are counted once it is known who arrives"
    began = plan.owner if arrivals.began is None else arrivals.began
    uploads = count_clients(arrived) + arrivals.discarded
    repeated = int(np.isin(began, np.concatenate([*evaluators, np.zeros(0, np.int64)])).sum())
    examples = sum(len(shard) for owner, shard in zip(plan.owner, plan.shards, strict=True) if owner == SERVER)
    reply_bytes = entries * 4 * extra.fine_tuned + ANSWER_BYTES * extra.reported_losses
    data_bytes = examples * (ctx.traffic.example_bytes + LABEL_BYTES)
    return {
        "mb_down": message * 4 / 1e6 * count_clients(began) + entries * 4 / 1e6 * (extra_downloads - repeated),
        "mb_up": exp.upload_bytes(message) / 1e6 * uploads + (reply_bytes + data_bytes) / 1e6,
    }


def count_clients(owner: np.ndarray) -> int:
    """How many rows `owner [C]` are clients' and not the server's own."""
    return int((owner != SERVER).sum())
