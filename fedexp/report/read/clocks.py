"""Whether simulated seconds of several runs compare: on a shared link that depends on who waits for whom."""

from collections.abc import Iterable

import numpy as np

from fedexp.report.read.runs import Run

NOTE = (
    "simulated seconds do not compare: on a shared link (fleet.link=shared) clients of a synchronous round begin to "
    "train once the slowest has the model, and send in a fixed order; where the server does not wait, each sends as "
    "soon as it is ready; run both with fleet.link=own"
)


def share_link_differently(runs: Iterable[Run]) -> bool:
    """Whether clients share a link in some runs in a synchronous round, in others while the server steps."""
    return len({is_overlapping(run) for run in runs if run.config.get("fleet.link") == "shared"}) > 1


def is_overlapping(run: Run) -> bool:
    """Whether clients train on while the server steps."""
    return bool(np.isfinite(run.column("pacing.in_flight")).any())
