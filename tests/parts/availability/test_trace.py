"""Windows of a file: who is there when, until when, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError, RunError
from fedexp.parts.availability.trace import read_windows
from fedexp.run.run import run

HEAD = "client,from_s,to_s\n"


def written(folder: Path, body: str, head: str = HEAD) -> Path:
    path = folder / "windows.csv"
    path.write_text(head + body)
    return path


def seen(windows, now_s: float, clients: int = 3) -> list[tuple[bool, float]]:
    return list(zip(*(column.tolist() for column in windows.look(np.arange(clients), now_s)), strict=True))


def test_a_client_is_there_from_the_beginning_until_just_before_the_end(tmp_path: Path):
    windows = read_windows(written(tmp_path, "2,5,7\n0,10,20\n0,0,4\n2,7,inf\n"), np.inf)
    assert seen(windows, 0.0) == [(True, 4.0), (False, np.inf), (False, 5.0)]
    assert seen(windows, 4.0) == [(False, 10.0), (False, np.inf), (False, 5.0)]
    assert seen(windows, 5.0) == [(False, 10.0), (False, np.inf), (True, np.inf)]  # two windows that touch are one
    assert seen(windows, 19.5) == [(True, 20.0), (False, np.inf), (True, np.inf)]
    assert seen(windows, 20.0) == [(False, np.inf), (False, np.inf), (True, np.inf)]


def test_a_file_that_begins_anew(tmp_path: Path):
    windows = read_windows(written(tmp_path, "0,2,5\n1,8,10\n1,0,3\n2,0,10\n"), 10.0)
    assert seen(windows, 1.0) == [(False, 2.0), (True, 3.0), (True, np.inf)]
    assert seen(windows, 34.0) == [(True, 35.0), (False, 38.0), (True, np.inf)]
    assert seen(windows, 36.0) == [(False, 42.0), (False, 38.0), (True, np.inf)]
    assert seen(windows, 39.0) == [(False, 42.0), (True, 43.0), (True, np.inf)]  # on into the next cycle


def test_an_odd_cycle_is_not_rounded_away(tmp_path: Path):
    windows = read_windows(written(tmp_path, "0,0.01,0.05\n"), 0.1)
    now_s = 0.0
    for _ in range(2000):
        present, until_s = windows.look(np.array([0]), now_s)
        assert until_s[0] > now_s
        now_s = float(until_s[0])
        assert windows.look(np.array([0]), now_s)[0][0] != present[0]
    assert now_s == pytest.approx(100, abs=0.2)


@pytest.mark.parametrize(
    "line", ["0,5,5", "0,5,4", "-1,0,1", "0,-1,1", "0,nan,1", "0,1,", "0.5,0,1", "x,0,1", "1e19,0,1", "0,inf,inf"]
)
def test_a_line_that_cannot_be_is_named(tmp_path: Path, line: str):
    with pytest.raises(ConfigError, match="line 3 must hold a client >= 0, below") as error:
        read_windows(written(tmp_path, f"0,0,1\n{line}\n"), np.inf)
    assert "\n" not in str(error.value)


def test_windows_that_overlap_are_named(tmp_path: Path):
    with pytest.raises(ConfigError, match="line 4 must not overlap with line 2, of the same client"):
        read_windows(written(tmp_path, "0,10,20\n1,12,14\n0,5,11\n"), np.inf)
    with pytest.raises(ConfigError, match="line 3 must not overlap with line 2"):
        read_windows(written(tmp_path, "0,0,100\n0,5,11\n"), np.inf)


def test_what_ends_after_the_file_begins_anew_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"line 3 must end by availability\.repeat_s=50, when the file begins anew"):
        read_windows(written(tmp_path, "0,0,50\n1,0,51\n"), 50.0)


def test_wrong_columns_no_lines_and_no_file(tmp_path: Path):
    with pytest.raises(ConfigError, match="must have the columns client,from_s,to_s, got client,round"):
        read_windows(written(tmp_path, "1,2\n", "client,round\n"), np.inf)
    with pytest.raises(ConfigError, match="line 2 must hold"):
        read_windows(written(tmp_path, ""), np.inf)
    with pytest.raises(ConfigError, match="must be a CSV file"):
        read_windows(tmp_path / "nowhere.csv", np.inf)


def test_unknown_clients_are_refused_before_any_data(tmp_path: Path, tiny):
    path = written(tmp_path, "0,0,9\n6,0,9\n")
    words = ("fleet=simulated", "availability=trace", f"availability.path={path}")
    with pytest.raises(ConfigError, match="must hold clients from 0 to 5, got client 6; remove its lines or raise"):
        run(tiny(*words), tmp_path / "run")


def test_a_run_ends_where_nobody_comes_any_more(tmp_path: Path, tiny):
    path = written(tmp_path, "0,3,3.5\n")
    words = ("fleet=simulated", "availability=trace", f"availability.path={path}")
    assert spec.build(tiny(*words)).availability.changes
    with pytest.raises(RunError, match="no client is there any more after"):
        run(tiny(*words), tmp_path / "run")
    assert (tmp_path / "run" / "metrics.csv").read_text().count("\n") == 2  # one round, in which the client left
