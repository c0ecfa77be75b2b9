"""Rows cut to a norm, by hand."""

import math
from collections.abc import Callable
from typing import Any

import torch

from fedexp.parts.privacy.clipping import clip_rows

Tiny = Callable[..., dict[str, Any]]


def test_clipping_by_hand():
    rows = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    torch.testing.assert_close(clip_rows(rows, 1.0), torch.tensor([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]))
    assert torch.equal(clip_rows(rows, math.inf), rows)
