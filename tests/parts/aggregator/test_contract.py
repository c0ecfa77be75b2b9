"""What every aggregator must keep, found from conf/."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from composing import options
from worlds import WEIGHTLESS, Tiny, agreed_row, folded, uploads_like, world_of

from fedexp.parts.aggregator.mifa import MIFA
from fedexp.simulation import context
from fedexp.simulation.checks.pending_checks import PendingChecks
from fedexp.simulation.round import fold
from fedexp.simulation.world import World


@pytest.fixture(params=options("aggregator"))
def rule(request: pytest.FixtureRequest, tiny: Tiny) -> World:
    return world_of(tiny(f"aggregator={request.param}", "scenario.clients=5", *WEIGHTLESS.get(request.param, ())))


class TestAggregator:
    @pytest.mark.law(
        "aggregator",
        "if all send one update, it is the step (fltrust: the server's own; fedmgda: of length 1; qfedavg: with q = 0; "
        "feddyn: with alpha = 0; pfnm: with s near 0)",
    )
    def test_agreeing_clients_are_obeyed(self, rule: World):
        row = agreed_row(rule)
        moved, _ = folded(rule, uploads_like(row.expand(5, -1)))
        torch.testing.assert_close(moved, rule.first.flat + row)

    @pytest.mark.law("aggregator", "the order of clients does not matter, to the byte")
    def test_order_of_clients_does_not_matter(self, rule: World):
        delta = torch.randn(5, rule.layout.size)
        order = [3, 0, 4, 2, 1]
        straight, _ = folded(rule, uploads_like(delta))
        turned, _ = folded(rule, uploads_like(delta[order], order))
        assert torch.equal(straight, turned)

    @pytest.mark.law(
        "aggregator",
        "a round that nobody came to leaves the model as it is, to the byte, and a later one, too (mifa: the latter "
        "takes the mean of the updates that it remembers once more)",
    )
    def test_nobody_leaves_the_model_as_it_is(self, rule: World):
        nobody = uploads_like(torch.zeros(0, rule.layout.size))
        moved, _ = folded(rule, nobody)
        assert torch.equal(moved, rule.first.flat)
        uploads = uploads_like(torch.randn(5, rule.layout.size))
        with PendingChecks() as checks:
            models, memory = fold(rule.exp, (rule.first,), uploads, {}, context.make_context(rule, 1), checks)
        with PendingChecks() as checks:
            later, _ = fold(rule.exp, models, nobody, memory, context.make_context(rule, 2), checks)
        assert torch.equal(later[0].flat, models[0].flat) == (not isinstance(rule.exp.aggregator, MIFA))

    @pytest.mark.law("aggregator", "updates that are not finite change nothing, to the byte")
    def test_what_is_not_finite_is_dropped_and_counted(self, rule: World):
        delta = torch.randn(5, rule.layout.size)
        spoiled = delta.clone()
        spoiled[1, 7], spoiled[3, 0] = torch.nan, torch.inf
        clean, _ = folded(rule, uploads_like(delta).where(np.array([0, 2, 4])))
        moved, memory = folded(rule, uploads_like(spoiled))
        assert torch.equal(moved, clean)
        assert memory["aggregator"]["columns"]["dropped"] == 2

    def test_inputs_are_not_written(self, rule: World):
        delta = torch.randn(4, rule.layout.size)
        kept, first = delta.clone(), rule.first.flat.clone()
        folded(rule, uploads_like(delta))
        assert torch.equal(delta, kept)
        assert torch.equal(rule.first.flat, first)

    def test_the_same_columns_in_every_round(self, rule: World, caplog: pytest.LogCaptureFixture):
        reports, memory, models = [], {}, (rule.first,)
        for number, rows in enumerate((5, 0, 1, 4), start=1):
            uploads = uploads_like(torch.randn(rows, rule.layout.size))
            models, memory = fold(
                rule.exp, models, uploads, memory, context.make_context(rule, number), PendingChecks()
            )
            reports.append(memory["aggregator"]["columns"])
        assert all(report.keys() == reports[0].keys() for report in reports)
        assert all(value is None or type(value) in (int, float) for report in reports for value in report.values())

    @pytest.mark.law("aggregator", "clients without examples change nothing, to the byte")
    def test_clients_without_examples_have_no_say(self, rule: World):
        delta = torch.randn(5, rule.layout.size)
        delta[[1, 4]] = 0
        uploads = uploads_like(delta)
        silent = replace(uploads, examples=np.array([20, 0, 20, 20, 0]))
        moved, _ = folded(rule, silent)
        expected, _ = folded(rule, uploads.where(np.array([0, 2, 3])))
        assert torch.equal(moved, expected)
