from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fedexp.core.client_rows import ClientRows
from fedexp.core.values import Jobs, Layout, Uploads, concatenate_rows
from fedexp.parts.layers import BatchNorm


@pytest.fixture
def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 2, 3), BatchNorm(2), nn.Linear(4, 3))


def test_layout_puts_buffers_behind_the_parameters(network: nn.Module):
    layout = Layout.of(network)
    assert layout.names[-2:] == ("1.running_mean", "1.running_var")
    assert layout.parameters == 2 * 9 + 2 + 2 + 2 + 12 + 3
    assert layout.size == layout.parameters + 4


def test_columns_of_entries_in_the_order_of_the_row(network: nn.Module):
    layout = Layout.of(network)
    numbered = layout.views(torch.arange(layout.size))
    names = ["2.weight", "1.running_var", "0.bias"]
    assert layout.columns(names).tolist() == sorted(torch.cat([numbered[name].reshape(-1) for name in names]).tolist())
    assert layout.columns([]).tolist() == []


def test_views_write_through_and_flatten_reads_back(network: nn.Module):
    layout = Layout.of(network)
    row = torch.arange(float(layout.size))
    views = layout.views(row)
    views["2.bias"][0] = -1.0
    assert row[layout.parameters - 3] == -1.0
    network.load_state_dict(views, strict=False)
    assert torch.equal(layout.flatten(network), row)


def uploads(owner: list[int]) -> Uploads:
    size = np.array(owner)
    return Uploads(size, size * 0, size + 1, size * 4.0, torch.tensor(owner)[:, None] * 1.0, size * 2.0, size * 3.0)


def test_uploads_are_kept_and_sorted_together():
    three = uploads([5, 1, 3]).sort_by_owner()
    assert three.owner.tolist() == three.delta[:, 0].tolist() == [1, 3, 5]
    assert three.sort_by_owner() is three
    assert three.where(np.array([True, False, True])).loss_after.tolist() == [3.0, 15.0]


def test_jobs_of_several_rounds_are_taken_and_joined_with_all_their_columns():
    """What is no column (the deadline) is that of the first."""
    shards, number = tuple(np.arange(size) for size in (3, 1, 2)), np.arange(3)
    first = Jobs(number + 4, shards, None, 9.0, model=number, begun=number * 0 + 1, sent=lambda number: ())
    later = replace(first.where(np.array([2, 0])), begun=np.array([2, 2]))
    assert [len(shard) for shard in later.shards] == later.sizes.tolist() == [2, 3]
    both = concatenate_rows([later, first])
    assert both.owner.tolist() == [6, 4, 4, 5, 6]
    assert (both.begun.tolist(), both.model.tolist()) == ([2, 2, 1, 1, 1], [2, 0, 0, 1, 2])
    assert both.sent is first.sent
    assert (both.sizes.tolist(), both.importance, both.deadline_s) == ([2, 3, 3, 1, 2], None, 9.0)
    assert first.where(np.ones(3, dtype=bool)) is first is concatenate_rows([first])


def test_extra_rows_go_with_their_uploads_and_one_number_makes_all_unusable():
    both = replace(uploads([5, 1]), extra={"variate": torch.tensor([[1.0, 2.0], [torch.nan, 4.0]])})
    assert both.is_finite().tolist() == [True, False]
    assert both.sort_by_owner().extra["variate"][:, 1].tolist() == [4.0, 2.0]


def test_client_rows_are_made_on_first_use_and_replaced():
    start = torch.zeros(2, 3)
    rows = ClientRows.load({}, 2, start)
    columns = np.array([0, 2])
    assert rows.restore(np.array([4, 2]), start, columns) is start
    rows = rows.with_rows(np.array([4, 2]), torch.tensor([[4.0, 40.0], [2.0, 20.0]]))
    rows = ClientRows.load(rows.with_rows(np.array([3, 4]), torch.tensor([[3.0, 30.0], [5.0, 50.0]])).save(), 2, start)
    assert rows.owner.tolist() == [2, 3, 4]
    assert rows.restore(np.array([4, 9]), start, columns).tolist() == [[5, 0, 50], [0, 0, 0]]
    assert rows.restore(np.array([4, 9]), start, slice(1, 3)).tolist() == [[0, 5, 50], [0, 0, 0]]
    assert start.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert rows.rows_of(np.array([9, 4, 2])).tolist() == [[0, 0], [5, 50], [2, 20]]


def test_rows_without_columns_keep_nothing():
    rows = ClientRows.load({}, 0, torch.zeros(2, 3))
    assert len(rows.with_rows(np.array([1, 2]), torch.zeros(2, 0)).owner) == 0
