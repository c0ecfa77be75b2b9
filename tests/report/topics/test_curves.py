import numpy as np
import pandas as pd
import pytest

from fedexp.report.topics import curves


def table(rounds):
    count = np.arange(1, rounds + 1)
    return pd.DataFrame(
        {
            "round": count,
            "test_loss": 2 / count,
            "test_accuracy": 1 - 1 / count,
            "train_loss": 1.5 / count,
            "participants": 10,
        }
    )


@pytest.mark.parametrize("rounds", [0, 1, 2, 30, 400])
def test_runs_of_every_length_are_drawn(tmp_path, rounds):
    curves.draw(tmp_path / "curves.png", table(rounds))
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["curves.png"]


def test_empty_cells_infinities_and_absent_columns_are_left_out(tmp_path):
    rows = table(6)
    rows.loc[[0, 2], ["test_loss", "test_accuracy"]] = np.nan
    rows.loc[3, "test_loss"] = np.inf
    rows["train_loss"] = None
    curves.draw(tmp_path / "curves.png", rows)
    curves.draw(tmp_path / "curves.png", rows.filter(["round", "test_accuracy"]))
    assert (tmp_path / "curves.png").exists()
