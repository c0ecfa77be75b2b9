import numpy as np
import pytest
import torch
from torch import nn

from fedexp.core.client_rows import ClientRows
from fedexp.core.values import Layout, Uploads
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


def test_rows_without_columns_keep_nothing():
    rows = ClientRows.load({}, 0, torch.zeros(2, 3))
    assert len(rows.with_rows(np.array([1, 2]), torch.zeros(2, 0)).owner) == 0
