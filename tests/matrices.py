"""Rows for the tests of rules: ties, duplicates, one client, huge and tiny values."""

import numpy as np
import torch
from hypothesis import strategies as st

SCALES = (1e-30, 1.0, 1e30)


@st.composite
def whole(draw: st.DrawFn, least: int = 1, most: int = 9) -> torch.Tensor:
    """Small whole numbers: every sum of them is exact, ties and duplicates abound."""
    rows, columns = draw(st.integers(least, most)), draw(st.integers(1, 4))
    entry = st.integers(-3, 3)
    line = st.lists(entry, min_size=columns, max_size=columns)
    return torch.tensor(draw(st.lists(line, min_size=rows, max_size=rows)), dtype=torch.float32)


@st.composite
def wild(draw: st.DrawFn, least: int = 1, most: int = 9, mixed: bool = True) -> torch.Tensor:
    """Rows of any size, some of them the same; unless `mixed` is false, huge ones stand beside tiny ones."""
    rows, columns = draw(st.integers(least, most)), draw(st.integers(1, 5))
    values = np.random.default_rng(draw(st.integers(0, 2**32))).normal(size=(rows, columns))
    size = st.sampled_from(SCALES)
    scale = draw(st.lists(size, min_size=rows, max_size=rows) | size if mixed else size)
    source = draw(st.lists(st.integers(0, rows - 1), min_size=rows, max_size=rows) | st.just(list(range(rows))))
    spread = values * np.reshape(scale, (-1, 1))
    return torch.tensor(spread[source], dtype=torch.float32)


def normal(seed: int, *shape: int) -> torch.Tensor:
    """Independent standard normal entries."""
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape)).float()


def equal_shares(rows: int) -> torch.Tensor:
    """The shares of clients that count alike."""
    return torch.full((rows,), 1 / rows, dtype=torch.float64)


def close(found: torch.Tensor, expected: torch.Tensor | list[float], beside: torch.Tensor) -> bool:
    """Whether two rows agree to single precision, beside the size of what they were made from."""
    size = beside.double().abs().max(dim=0).values
    wanted = torch.as_tensor(expected, dtype=torch.float64)
    return bool(((found.double() - wanted).abs() <= 1e-6 * wanted.abs() + 1e-12 * size).all())
