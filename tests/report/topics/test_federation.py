import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from fedexp.core.errors import ConfigError
from fedexp.report.draw import style
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs
from fedexp.report.topics import federation

COUNTS = np.array([[3, 0, 2], [0, 0, 0], [1, 4, 0]])


def size(path):
    header = path.read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    return int.from_bytes(header[16:20]), int.from_bytes(header[20:24])


def test_csv_by_hand(tmp_path):
    federation.write_csv(tmp_path / "federation.csv", COUNTS, ["cat", "dog", "a, b"])
    assert (tmp_path / "federation.csv").read_bytes() == (
        b'client,examples,cat,dog,"a, b"\n0,5,3,0,2\n1,0,0,0,0\n2,5,1,4,0\n'
    )
    assert [path.name for path in tmp_path.iterdir()] == ["federation.csv"]


def test_csv_of_many_clients_reads_back(tmp_path):
    counts = np.random.default_rng(0).poisson(0.3, (70_000, 4)).astype(np.int32)
    federation.write_csv(tmp_path / "federation.csv", counts, list("abcd"))
    table = pd.read_csv(tmp_path / "federation.csv")
    assert np.array_equal(table["client"], np.arange(70_000))
    assert np.array_equal(table["examples"], counts.sum(axis=1))
    assert np.array_equal(table[list("abcd")], counts)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "federation.csv"
    federation.write_csv(path, COUNTS, list("abc"))
    before = path.read_bytes()
    with pytest.raises(TypeError):
        federation.write_csv(path, np.full((2, 3), None), list("abc"))
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["federation.csv"]


@pytest.mark.parametrize(("clients", "classes"), [(1, 1), (30, 12), (31, 10), (100, 62), (3000, 62)])
def test_pictures_of_every_size_are_of_a_sensible_shape(tmp_path, clients, classes):
    counts = np.random.default_rng(0).poisson(3, (clients, classes))
    federation.draw(tmp_path / "federation.png", counts, [f"class {label}" for label in range(classes)])
    width, height = size(tmp_path / "federation.png")
    assert 600 <= width <= 3000
    assert 400 <= height <= 3000
    assert [path.name for path in tmp_path.iterdir()] == ["federation.png"]


@pytest.mark.parametrize("clients", [3, 200])
def test_empty_clients_and_odd_class_names_are_drawn(tmp_path, clients):
    counts = np.zeros((clients, 2), dtype=np.int32)
    counts[0] = [5, 1]
    federation.draw(tmp_path / "federation.png", counts, ["cost $x$ $", "a_b^{" * 50])
    assert (tmp_path / "federation.png").exists()


def test_groups_are_sorted_by_main_class_then_by_its_share():
    shares = federation.grouped_shares(np.array([[1, 3], [0, 0], [9, 1], [0, 8], [6, 4]]))
    assert shares.T.tolist() == [[0.9, 0.1], [0.6, 0.4], [0, 1], [0.25, 0.75]]


def test_groups_are_means():
    counts = np.repeat([[4, 0], [0, 4]], 100, axis=0)
    shares = federation.grouped_shares(counts)
    assert shares.shape == (2, 100)
    assert shares.sum(axis=0) == pytest.approx(1)
    assert shares[0].tolist() == [1] * 50 + [0] * 50


def test_matplotlib_is_imported_late_and_pyplot_never(tmp_path):
    program = f"""
import sys
from pathlib import Path
import numpy as np
from fedexp.report.topics import federation
assert "matplotlib" not in sys.modules
federation.draw(Path({str(tmp_path / "federation.png")!r}), np.eye(3, dtype=int), list("abc"))
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@style.style()
def test_each_different_federation_is_drawn_once(make_run, tmp_path):
    folders = [make_run(str(number), seed=number) for number in range(3)]
    (folders[-1] / "federation.csv").write_text("client,examples,cat,dog\n0,1,1,0\n")
    part = federation.build_section(group_runs(collect_runs([tmp_path])[0]))
    assert part is not None
    assert [one.caption for one in part.pictures] == ["Seeds 0, 1 of every method.", "Seed 2 of every method."]


@style.style()
def test_of_very_many_federations_the_first_are_drawn(make_run, tmp_path):
    for number in range(10):
        (make_run(str(number), seed=number) / "federation.csv").write_text(
            f"client,examples,cat\n0,{number},{number}\n"
        )
    part = federation.build_section(group_runs(collect_runs([tmp_path])[0]))
    assert part is not None
    assert len(part.pictures) == 8
    assert part.note.endswith("The first 8 of 10 federations.")


@pytest.mark.parametrize("row", ["0,1,x", "0,1,", "0,1,0.5", "0,1,-1"])
def test_what_is_no_number_of_examples_is_named(make_run, tmp_path, row):
    (make_run("0") / "federation.csv").write_text(f"client,examples,cat\n{row}\n")
    with pytest.raises(ConfigError, match="must have whole numbers from 0 on in its column cat; is it damaged"):
        federation.find_partitions(group_runs(collect_runs([tmp_path])[0]))


@pytest.mark.parametrize("text", ["", "client,examples,cat\n", "client,examples\n0,1\n"])
def test_a_table_without_clients_or_classes_is_left_out(make_run, tmp_path, text):
    (make_run("0") / "federation.csv").write_text(text)
    assert federation.find_partitions(group_runs(collect_runs([tmp_path])[0])) == []
