"""Where the copies in bfloat16 lie in memory."""

import torch

from fedexp.training.layers.bfloat16 import padded_length, rounded_lines
from fedexp.training.layers.layer_pass import whole_lines


def test_long_lines_begin_at_multiples_of_16_bytes():
    assert [padded_length(entries) for entries in (785, 129, 73, 512)] == [792, 136, 80, 512]


def test_short_lines_are_not_made_much_longer():
    assert [padded_length(entries) for entries in (9, 10, 28, 49, 65)] == [9, 10, 28, 49, 72]


def test_behind_a_line_are_zeros():
    places = rounded_lines(torch.ones(2, 3, 129))
    places.copy_(torch.ones(2, 3, 129))
    assert (places.shape, places.stride()) == ((2, 3, 129), (3 * 136, 136, 1))
    assert whole_lines(places).sum(dim=2).unique().tolist() == [129]
    assert whole_lines(places).shape == (2, 3, 136)
    assert all(line.data_ptr() % 16 == 0 for row in places for line in row)


def test_entries_of_rows_have_nothing_behind_them():
    entries = torch.zeros(3, 10)[:, 2:7].view(3, 1, 5)
    assert whole_lines(entries).shape == entries.shape
    assert whole_lines(entries).data_ptr() == entries.data_ptr()
