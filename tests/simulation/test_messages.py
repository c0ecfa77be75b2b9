"""Messages: the model's delta and, behind it, what the local rule adds; what stays with clients is in neither."""

from dataclasses import replace

import numpy as np
import torch
from worlds import Tiny, rounds_with_rows, uploads_like, world_of

from fedexp.core.values import Memory, Trained
from fedexp.parts.context import Context
from fedexp.parts.local.personal_layer import PersonalLayer
from fedexp.simulation import context
from fedexp.simulation.messages import open_messages, private_message_columns
from fedexp.simulation.world import World


class TwoMore(PersonalLayer):
    """Sends where it ended and where it began besides."""

    extra_rows = ("end", "begin")

    def finish(self, trained: Trained, memory: Memory, ctx: Context) -> tuple[torch.Tensor, Memory]:
        rows = [trained.rows.clone(), trained.start_matrix]
        extra = [row[:, : ctx.layout.parameters] for row in rows]
        return torch.cat([trained.delta(), *extra], dim=1), memory


def world_with_two_more(tiny: Tiny, *words: str) -> World:
    world = world_of(tiny("local=personal_layer", "model.hidden=[5]", "selector=all", *words))
    exp = replace(world.exp, local=TwoMore(lr=0.1, batch_size=20, epochs=1))
    return replace(world, exp=exp)


def test_private_columns_are_those_of_every_row(tiny: Tiny):
    world = world_with_two_more(tiny)
    private, size = world.exp.local.private_columns(world.layout), world.layout.size
    columns = private_message_columns(world.exp, world.layout)
    assert columns.tolist() == [*private, *(size + private), *(2 * size + private)]
    uploads = open_messages(world.exp, world.layout, uploads_like(torch.ones(2, 3 * size)))
    assert list(uploads.extra) == ["end", "begin"]
    shared = np.setdiff1d(np.arange(size), private)
    for rows in (uploads.delta, *uploads.extra.values()):
        assert not rows[:, private].any()
        assert rows[:, shared].all()


def test_all_rows_travel_by_name(tiny: Tiny):
    world = world_with_two_more(tiny)
    (_, row, sent), *_ = rounds_with_rows(world)
    begin, end = sent.extra["begin"], sent.extra["end"]
    torch.testing.assert_close(end - begin, sent.delta)
    assert begin.any()
    sent_entries = world.layout.size - len(world.exp.local.private_columns(world.layout))
    assert row["mb_up"] == row["mb_down"] == 6 * 3 * 4 * sent_entries / 1e6
    assert context.make_context(world, 1).traffic.extra_rows == ("end", "begin")
