"""Rows of five columns on which robust rules are compared with public programs; nothing is drawn."""

import torch
from authors.three_clients import read_numbers


def rows(count: int) -> torch.Tensor:
    """Rows `[n, 5]` of short binary fractions, of which the last two lie far out."""
    i, j = torch.arange(count)[:, None], torch.arange(5)
    made = ((11 * i**2 + 3 * i * j + 11 * j**2) % 101 - 50) / 32
    made[-2:] += 3
    return made


def numbers(text: str) -> torch.Tensor:
    """Numbers of a text, one row after the other, `[n, 5]`."""
    return read_numbers(text).reshape(-1, 5)
