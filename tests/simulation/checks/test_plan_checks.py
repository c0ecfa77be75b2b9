"""Who may be chosen: nobody who still trains on what it was sent before."""

from types import SimpleNamespace

import numpy as np
import pytest

from fedexp.core.values import Plan
from fedexp.simulation.checks.plan_checks import check_choice


@pytest.mark.parametrize(
    ("owner", "complaint"),
    [
        ([0, 3], None),
        ([], None),
        ([4, 2, 0], "clients that are not in ctx.fleet.busy, got client 2"),
        ([5], "clients from 0 to 4, got client 5"),
    ],
)
def test_a_client_that_is_busy_is_named(owner: list[int], complaint: str | None):
    plan = Plan(np.array(owner, np.int64), tuple(np.arange(2) for _ in owner))
    ctx = SimpleNamespace(clients=5, fleet=SimpleNamespace(busy=np.array([1, 2, 4]), capacity=2))
    assert check_choice((plan, {}), {}, ctx) == complaint
