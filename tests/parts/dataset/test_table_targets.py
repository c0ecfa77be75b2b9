"""Targets in deviations, of the table's training rows and of public ones; the rest is in test_table.py."""

import numpy as np
import pandas as pd
import pytest

from fedexp.core.errors import ConfigError
from fedexp.parts.dataset.table_targets import read_targets, standard_targets


def test_deviations_by_hand():
    y, names = read_targets(pd.DataFrame({"days": [1, 3, 9]}), ("days",), "numbers")
    assert (y.tolist(), names) == ([[1], [3], [9]], ("days",))
    by_training_rows, (column,) = standard_targets(y, names, np.array([True, True, False]), None)
    assert (by_training_rows.tolist(), column.mean, column.std) == ([[-1], [1], [7]], 2, 1)
    by_public_rows, (column,) = standard_targets(y, names, np.ones(3, bool), pd.DataFrame({"days": [0, 4]}))
    assert (by_public_rows.tolist(), column.mean, column.std) == ([[-0.5], [0.5], [3.5]], 2, 2)


def test_numbers_of_one_row_each_are_no_classes():
    with pytest.raises(ConfigError, match="makes 3 classes of one row each; to predict its numbers set"):
        read_targets(pd.DataFrame({"days": [1, 3, 9]}), ("days",), "class")
