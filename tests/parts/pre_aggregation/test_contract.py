"""What every mixing before an aggregator must keep, found from conf/."""

import pytest
import torch
from composing import options
from worlds import WEIGHTLESS, Tiny, agreed_row, folded, uploads_like, world_of

from fedexp.core.errors import ConfigError
from fedexp.simulation.setup import compatibility


@pytest.mark.parametrize("option", options("pre_aggregation"))
class TestPreAggregation:
    @pytest.mark.law("pre_aggregation", "if all send one update, it is the step of every aggregator that it goes with")
    @pytest.mark.parametrize("aggregator", options("aggregator"))
    def test_agreeing_clients_are_obeyed_by_every_rule(self, tiny: Tiny, option: str, aggregator: str):
        words = (f"aggregator={aggregator}", f"pre_aggregation={option}", *WEIGHTLESS.get(aggregator, ()))
        world = world_of(tiny(*words, "scenario.clients=7", "scenario.participants=7"))
        rule = world.exp.aggregator
        alone = rule.keeps_rows or rule.hides_rows or rule.normalises or not rule.keeps_layout
        if world.exp.pre_aggregation.averages_rows and alone:
            with pytest.raises(ConfigError, match=f"pre_aggregation={option} mixes the rows of"):
                compatibility.refuse(world.exp)
            return
        row = agreed_row(world)
        moved, _ = folded(world, uploads_like(row.expand(7, -1)))
        torch.testing.assert_close(moved, world.first.flat + row)

    @pytest.mark.law("pre_aggregation", "the order of clients does not matter, to the byte")
    def test_order_of_clients_does_not_matter(self, tiny: Tiny, option: str):
        world = world_of(tiny(f"pre_aggregation={option}"))
        delta, order = torch.randn(5, world.layout.size), [3, 0, 4, 2, 1]
        straight, memory = folded(world, uploads_like(delta))
        turned, again = folded(world, uploads_like(delta[order], order))
        assert torch.equal(straight, turned)
        assert memory["pre_aggregation"]["columns"] == again["pre_aggregation"]["columns"]

    def test_the_same_columns_in_every_round(self, tiny: Tiny, option: str):
        world = world_of(tiny(f"pre_aggregation={option}"))
        reports = []
        for rows in (5, 0, 1):
            moved, memory = folded(world, uploads_like(torch.randn(rows, world.layout.size)))
            reports.append(memory["pre_aggregation"]["columns"].keys())
            assert rows or torch.equal(moved, world.first.flat)
        assert reports[0] == reports[1] == reports[2]

    def test_inputs_are_not_written(self, tiny: Tiny, option: str):
        world = world_of(tiny(f"pre_aggregation={option}"))
        delta = torch.randn(4, world.layout.size)
        kept = delta.clone()
        folded(world, uploads_like(delta))
        assert torch.equal(delta, kept)
