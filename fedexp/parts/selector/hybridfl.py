"""HybridFL (Yoshida et al. 2020, arXiv 1905.07210): FedCS with balanced classes and some data on the server.

As in algorithms 7 and 8 of the selection thesis, the greedy algorithm minimises T_inc times the unevenness of the class
counts of the chosen clients and the candidate together. While the chosen ones train, candidates that are not chosen and
permit it (each with probability `upload_permission`) send examples, class by class, until the first chosen client that
has examples has trained. The server trains on what was sent like one more participant with |D_UL| examples, in no time.
If nobody is chosen, or nothing sent, there is no such row.

Decisions: `variance_over_mean` has no square root in text and code of the thesis. An example is as large as it is
stored, plus 8 bytes for its label (`mb_up` counts both). Two readings of the thesis' code are options:
`upload_until=first_candidate` (until the first of all candidates has trained, chosen or not) and
`waiting=after_distribution` (see `deadline.py`).
"""

from typing import Annotated, Literal

import numpy as np

from fedexp.parts import LABEL_BYTES, SERVER, Context, Fraction, Plan, Resources
from fedexp.parts.selector.data_upload import examples_before_deadline
from fedexp.parts.selector.deadline import fill_round, std_over_mean, variance_over_mean
from fedexp.parts.selector.fedcs import FedCS

DISPERSIONS = {"variance_over_mean": variance_over_mean, "std_over_mean": std_over_mean}


class HybridFL(FedCS):
    """FedCS with class balance and data upload; `permission` says how often the uploaders are drawn."""

    needs_classes = True
    reveals = "how many examples of each class a client holds, and examples themselves"
    needs_one_model = "has the server train the global model on examples that clients send"

    cv: Literal["variance_over_mean", "std_over_mean"] = "variance_over_mean"
    upload_permission: Annotated[float, Fraction] = 0.01
    permission: Literal["once", "each_round"] = "once"
    upload_until: Literal["first_chosen", "first_candidate"] = "first_chosen"
    waiting: Literal["uploads", "after_distribution"] = "uploads"

    def select_candidates(
        self, candidates: np.ndarray, resources: Resources, round_s: float, ctx: Context
    ) -> np.ndarray:
        counting = self.waiting == "after_distribution"
        counts = ctx.clients_data.class_counts(candidates)
        return fill_round(resources, round_s, counts, DISPERSIONS[self.cv], counting_distribution=counting)

    def make_plan(
        self, candidates: np.ndarray, resources: Resources, chosen: np.ndarray, ctx: Context
    ) -> tuple[Plan, dict[str, float]]:
        plan = ctx.plan(candidates[chosen])
        sent = self._uploaded_examples(candidates, resources, chosen, ctx)
        if len(sent):
            plan = Plan(np.append(plan.owner, SERVER), (*plan.shards, sent))
        megabytes = len(sent) * (ctx.traffic.example_bytes + LABEL_BYTES) / 1e6
        return plan, {"uploaded_examples": len(sent), "uploaded_mb": megabytes}

    def _uploaded_examples(
        self, candidates: np.ndarray, resources: Resources, chosen: np.ndarray, ctx: Context
    ) -> np.ndarray:
        draws = ctx.fleet.run_draws if self.permission == "once" else ctx.fleet.draws
        permitted = draws("upload_permission", owner=candidates)[:, 0] < self.upload_permission
        permitted[chosen] = False
        training = chosen if self.upload_until == "first_chosen" else np.arange(len(candidates))
        training = training[ctx.sizes[candidates[training]] > 0]
        if not len(chosen) or not len(training) or not permitted.any():
            return np.zeros(0, dtype=np.int64)
        shards = list(ctx.plan(candidates[permitted]).shards)
        bits = 8.0 * (ctx.traffic.example_bytes + LABEL_BYTES)
        labels = [ctx.clients_data.labels(shard) for shard in shards]
        deadline_s = float(resources.update_s[training].min())
        return examples_before_deadline(shards, labels, resources.uplink[permitted], bits, deadline_s)
