"""Traces: which line holds when, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.parts.fleet.trace import read_trace
from fedexp.run.run import run
from fedexp.simulation import context
from fedexp.simulation.build_world import build_world
from fedexp.training.workers.pool import WorkerPool

HEAD = "client,round,bandwidth_mbit,compute_samples_per_s\n"


def written(folder: Path, body: str, head: str = HEAD) -> Path:
    path = folder / "trace.csv"
    path.write_text(head + body)
    return path


def test_a_line_holds_until_the_next_one_of_its_client(tmp_path: Path):
    trace = read_trace(written(tmp_path, "1,1,2.0,20\n0,3,1.0,10\n0,6,1.5,15\n"))
    for number, expected in ((1, 1.0), (3, 1.0), (5, 1.0), (6, 1.5), (900, 1.5)):
        bandwidth, speed, uplink = trace.at(np.array([1, 0]), number)
        assert bandwidth.tolist() == [2.0, expected]
        assert speed.tolist() == [20.0, expected * 10]
        assert uplink is None


def test_a_column_of_its_own_for_what_clients_send(tmp_path: Path):
    trace = read_trace(written(tmp_path, "1,1,2.0,20,0.5\n0,3,1.0,10,0.25\n", HEAD.replace("\n", ",upload_mbit\n")))
    assert np.array(trace.at(np.array([0, 1]), 3)).tolist() == [[1.0, 2.0], [10.0, 20.0], [0.25, 0.5]]
    with pytest.raises(ConfigError, match="line 2 must hold"):
        read_trace(written(tmp_path, "0,1,1,1,0\n", HEAD.replace("\n", ",upload_mbit\n")))


def test_who_has_no_line_is_named(tmp_path: Path):
    trace = read_trace(written(tmp_path, "0,1,1,1\n2,1,1,1\n"))
    trace.require(1)
    with pytest.raises(ConfigError, match="1 have none, the first is client 1"):
        trace.require(3)
    with pytest.raises(ConfigError, match="the first is client 7"):
        trace.at(np.array([0, 7]), 1)
    with pytest.raises(ConfigError, match="the first is client 1"):
        trace.at(np.array([1]), 1)


@pytest.mark.parametrize(
    "line",
    [
        "0,0,1,1",
        "0,1,0,1",
        "-1,1,1,1",
        "0,1,x,1",
        "0,1,1,inf",
        "0.5,1,1,1",
        "0,1,,1",
        "1e19,1,1,1",
        f"{'1' * 400},1,1,1",
    ],
)
def test_a_line_that_cannot_be_is_named(tmp_path: Path, line: str):
    with pytest.raises(ConfigError, match="line 3 must hold"):
        read_trace(written(tmp_path, f"0,1,1,1\n{line}\n"))


def test_blank_lines_count_and_a_line_twice_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="line 5 must hold"):
        read_trace(written(tmp_path, "0,1,1,1\n\n1,1,1,1\n2,1,0,1\n"))
    with pytest.raises(ConfigError, match="line 4 must be the only one of its client and round"):
        read_trace(written(tmp_path, "0,1,1,1\n1,1,1,1\n0,1,2,2\n"))


def test_wrong_columns_no_lines_and_no_file(tmp_path: Path):
    with pytest.raises(ConfigError, match="must have the columns"):
        read_trace(written(tmp_path, "1,2\n", "client,round\n"))
    with pytest.raises(ConfigError, match="line 2 must hold"):
        read_trace(written(tmp_path, ""))
    with pytest.raises(ConfigError, match="must be a CSV file"):
        read_trace(tmp_path / "nowhere.csv")
    with pytest.raises(ConfigError, match="must have a name of its own for each column, but 2 are named client"):
        read_trace(written(tmp_path, "1,1,1,1,1\n", "client," + HEAD))
    with pytest.raises(ConfigError, match="cannot be read: Length of header or names"):  # not shifted by one
        read_trace(written(tmp_path, "9,0,1,1,1\n"))


def test_a_fleet_follows_its_trace_and_refuses_a_short_one_before_any_data(tmp_path: Path, tiny):
    path = written(tmp_path, "".join(f"{client},1,1.4,{10 + client}\n" for client in range(6)))
    exp = spec.build(tiny("fleet=simulated", f"fleet.trace={path}"))
    world = build_world(exp, None, WorkerPool())
    assert exp.fleet.resources(np.array([5, 0]), context.make_context(world, 4)).speed.tolist() == [15.0, 10.0]
    with pytest.raises(ConfigError, match="4 have none, the first is client 6"):
        run(tiny("fleet=simulated", f"fleet.trace={path}", "scenario.clients=10"), tmp_path / "run")
