"""Accidents that are told in one line and lose nothing: asked to end, no room, half-made files, nothing finite."""

import errno
import io
import os
import resource
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
import torch
from command_line import complaint, ending_with
from processes import Command
from run_folders import change_config

from fedexp import cli
from fedexp.config import saved_config
from fedexp.core.signals import TerminationSignal
from fedexp.files import atomic
from fedexp.run import run as execution
from fedexp.run.progress import Progress
from fedexp.run.state import checkpoint
from fedexp.run.tables import GrowingCsv

MADE = ("dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60", "pictures=false", "hydra.run.dir=run")
QUICK = ("experiment=smoke", "engine=loop", "engine.workers=1", "pictures=false", "hydra.run.dir=run")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


HANGS_UP = pytest.mark.skipif(
    signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, reason="nohup is respected: nothing would hear SIGHUP"
)
ASKED = [(signal.SIGTERM, 143), pytest.param(signal.SIGHUP, 129, marks=HANGS_UP)]


@pytest.mark.parametrize(("number", "code"), ASKED)
def test_asked_to_end_a_run_with_workers_saves_its_state(number: int, code: int, tmp_path: Path):
    """The whole group hears it, as a scheduler's job or what a terminal leaves behind does."""
    words = (*MADE, "rounds=1000000", "checkpoint_s=1000", "engine=loop", "engine.workers=2")
    command = Command(tmp_path, "run", *words)
    table, deadline = Path("run/metrics.csv"), time.monotonic() + 60
    while time.monotonic() < deadline and not (table.exists() and table.read_bytes().count(b"\n") > 3):
        time.sleep(0.02)
    os.killpg(command.pid, number)
    try:
        assert command.wait() == code
    finally:
        with suppress(ProcessLookupError):
            os.killpg(command.pid, signal.SIGKILL)
    said = command.said.read_text().splitlines()
    assert said[-1] == "fedexp: interrupted; continue with: fedexp resume run"
    assert not [line for line in said if "Traceback" in line]
    state = torch.load("run/state.pt", weights_only=True)
    assert pd.read_csv(table)["round"].max() - state["round"] in (
        0,
        1,
    )  # a round may have been written, and not be over


@pytest.mark.parametrize(("number", "code"), ASKED)
def test_asked_to_end_a_sweep_says_how_it_goes_on(number: int, code: int, monkeypatch, capsys):
    recorder = ending_with(monkeypatch, None)

    def asked(config: dict, folder: Path) -> None:
        recorder(config, folder)
        os.kill(os.getpid(), number)
        time.sleep(10)

    monkeypatch.setattr(execution, "complete", asked)
    assert cli.main(["run", "-m", "experiment=smoke", "seed=0,1", "hydra.sweep.dir=many"]) == code
    assert complaint(capsys) == "fedexp: interrupted; continue with: fedexp resume many"
    assert len(recorder.calls) == 1


def test_a_terminal_that_is_gone_does_not_keep_the_state_from_being_saved(monkeypatch):
    def gone(_: Progress) -> None:
        raise OSError(errno.EIO, "Input/output error")

    def hung_up(_: Progress, row: dict) -> None:
        if row["round"] == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "round", hung_up)
    monkeypatch.setattr(Progress, "close", gone)
    assert cli.main(["run", *QUICK, "rounds=3", "checkpoint_s=1000"]) == 130
    assert torch.load("run/state.pt", weights_only=True)["round"] >= 1


@pytest.fixture
def small_files():
    """No file of this process may grow beyond so many bytes: a disk that is full at any place."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_state_that_finds_no_room_leaves_the_one_before(small_files, capsys):
    assert cli.main(["run", *QUICK, "rounds=2"]) == 0
    saved = Path("run/state.pt").read_bytes()
    Path("run/summary.json").unlink()
    change_config(Path("run"), lambda config: config.update(rounds=3))
    Path("run/state.pt").unlink()
    capsys.readouterr()
    small_files(len(saved) // 2)
    assert cli.main(["resume", "run"]) == 1
    small_files(-1)
    assert complaint(capsys) == "fedexp: File too large; start again once that is fixed"
    assert not list(Path("run").glob(".*.part"))
    assert cli.main(["resume", "run"]) == 0
    assert pd.read_csv("run/metrics.csv")["round"].tolist() == [1, 2, 3]


def test_torch_says_of_a_full_disk_what_the_system_said(small_files, tmp_path: Path):
    small_files(1000)
    with pytest.raises(OSError, match="File too large"):
        checkpoint._write({"row": torch.zeros(10_000)}, tmp_path / "state.pt")


@pytest.mark.parametrize("error", [KeyboardInterrupt, TerminationSignal(15)])
def test_an_interrupt_in_the_midst_of_a_state_stays_an_interrupt(error, tmp_path: Path, monkeypatch):
    class Interrupted(io.BytesIO):
        def write(self, content) -> int:
            if self.tell() > 1000:
                raise error
            return super().write(content)

    monkeypatch.setattr(Path, "open", lambda *_: Interrupted())
    with pytest.raises(KeyboardInterrupt):
        checkpoint._write({"row": torch.zeros(10_000)}, tmp_path / "state.pt")


def test_a_full_disk_in_the_midst_is_one_line_and_the_run_goes_on_from_its_state(monkeypatch, capsys):
    append = GrowingCsv.append

    def full(self: GrowingCsv, rows: list, first_columns: tuple) -> list:
        if self.path.name == "clients.csv" and rows[0]["round"] == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return append(self, rows, first_columns)

    with monkeypatch.context() as patch:
        patch.setattr(GrowingCsv, "append", full)
        assert cli.main(["run", *QUICK, "rounds=3", "checkpoint_s=0"]) == 1
    told = "fedexp: No space left on device; the last saved state is whole, continue with: fedexp resume run"
    assert complaint(capsys) == told
    assert cli.main(["resume", "run"]) == 0
    for name in ("metrics.csv", "digests.csv"):
        assert pd.read_csv(f"run/{name}")["round"].tolist() == [1, 2, 3]


def test_a_table_writes_all_of_a_line_or_says_so(small_files, tmp_path: Path):
    table = GrowingCsv(tmp_path / "table.csv", 0)
    table.append([{"round": 1}], ("round",))
    small_files(10)
    with pytest.raises(OSError, match="File too large"):
        table.append([{"round": 123456789}], ("round",))
    table.close()
    small_files(-1)
    GrowingCsv(tmp_path / "table.csv", 1).close()
    assert (tmp_path / "table.csv").read_text() == "round\n1\n"


def renamed() -> None:
    Path("run").rename("elsewhere")


def replaced() -> None:
    renamed()
    Path("run").mkdir()


def removed() -> None:
    renamed()
    shutil.copytree("elsewhere", "copy")
    shutil.rmtree("elsewhere")
    Path("copy").rename("elsewhere")


def at_the_end_of_round(number: int, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    told = Progress.round

    def round_and_act(self: Progress, row: dict) -> None:
        told(self, row)
        if row["round"] == number:
            act()

    monkeypatch.setattr(Progress, "round", round_and_act)


@pytest.mark.parametrize(
    ("accident", "last", "saved"),
    [
        (renamed, 2, "checkpoint_s=0"),
        (renamed, 3, "checkpoint_s=1000"),
        (replaced, 2, "checkpoint_s=1000"),
        (removed, 3, "checkpoint_s=0"),
    ],
)
def test_a_folder_that_is_gone_ends_the_run_and_is_not_made_anew(
    accident: Callable[[], None], last: int, saved: str, monkeypatch: pytest.MonkeyPatch, capsys
):
    with monkeypatch.context() as patch:
        at_the_end_of_round(last, accident, patch)
        assert cli.main(["run", *QUICK, "rounds=3", saved]) == 1
    assert complaint(capsys) == (
        "fedexp: run was removed, renamed or replaced while it was in use; put it back and continue with: fedexp "
        "resume run"
    )
    assert sorted(path.name for path in Path().iterdir()) == ["elsewhere", *(["run"] if accident is replaced else [])]
    assert not [*Path().glob("run/*")]
    if accident is replaced:
        Path("run").rmdir()
    Path("elsewhere").rename("run")
    assert cli.main(["resume", "run"]) == 0
    assert pd.read_csv("run/metrics.csv")["round"].tolist() == [1, 2, 3]


def test_a_table_that_is_gone_ends_the_run(monkeypatch: pytest.MonkeyPatch, capsys):
    at_the_end_of_round(1, lambda: Path("run/clients.csv").unlink(), monkeypatch)
    assert cli.main(["run", *QUICK, "rounds=3", "checkpoint_s=0"]) == 1
    assert complaint(capsys).startswith("fedexp: run/clients.csv was removed, renamed or replaced while it was in use")


def test_a_sweep_whose_folder_is_gone_ends_and_makes_none_anew(monkeypatch: pytest.MonkeyPatch, capsys):
    with monkeypatch.context() as patch:
        at_the_end_of_round(1, lambda: Path("many").rename("elsewhere"), patch)
        assert cli.main(["run", "-m", *QUICK[:-1], "rounds=2", "seed=0,1", "hydra.sweep.dir=many"]) == 1
    assert complaint(capsys) == (
        "fedexp: many was removed, renamed or replaced while it was in use; put it back; continue with: fedexp resume "
        "many"
    )
    assert [path.name for path in Path().iterdir()] == ["elsewhere"]
    Path("elsewhere").rename("many")
    assert cli.main(["resume", "many"]) == 0


def test_a_point_whose_folder_is_gone_fails_alone(monkeypatch: pytest.MonkeyPatch, capsys):
    def act() -> None:
        if Path("many/0").exists():
            Path("many/0").rename("elsewhere")

    at_the_end_of_round(1, act, monkeypatch)
    assert cli.main(["run", "-m", *QUICK[:-1], "rounds=2", "seed=0,1", "hydra.sweep.dir=many"]) == 1
    assert complaint(capsys).startswith("fedexp: 1 of 2 points failed: many/0;")
    assert sorted(path.name for path in Path("many").iterdir() if path.is_dir()) == ["1"]


@pytest.mark.parametrize("written", range(5))
def test_killed_while_its_config_is_written_a_run_begins_again(written: int, monkeypatch, capsys):
    write, left = atomic.write_atomically, [*range(written)]

    def killed(path: Path, content: bytes) -> None:
        if not left:
            (Path("run") / ".hydra").mkdir(exist_ok=True)
            raise KeyboardInterrupt
        left.pop()
        write(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(saved_config, "write_atomically", killed)
        ending_with(patch, KeyboardInterrupt(), at_seed=1)
        assert cli.main(["run", *QUICK, "seed=1"]) == 130
    capsys.readouterr()
    if written < 4:
        assert cli.main(["resume", "run"]) == 2
        said = complaint(capsys)
        assert said.startswith("fedexp: run was cut off before its config was written; begin again: fedexp run ")
        assert said.endswith("seed=1 hydra.run.dir=run" if written >= 2 else "fedexp run hydra.run.dir=run")
    else:
        Path("run/metrics.csv").unlink()  # it was killed before its first round
    assert cli.main(["run", *QUICK, "seed=2"]) == 0
    assert cli.main(["verify", "run", "--rounds", "1"]) == 0
    saved = saved_config.read(Path("run"))
    assert (saved.overrides[-1], saved.config["seed"]) == ("seed=2", 2)


def test_what_killed_processes_left_half_made_goes_at_the_next_start():
    assert cli.main(["run", *QUICK]) == 0
    left = [Path("run") / name for name in (".state.pt.1-0123abcd.part", ".hydra/.config.yaml.22-0123abcd.part")]
    kept = [Path("run") / name for name in (".tracker.json.1-0123abcd.part", ".mine.part", "other.part")]
    for path in (*left, *kept):
        path.write_text("half")
    assert cli.main(["resume", "run"]) == 0
    assert not [path for path in left if path.exists()]
    assert all(path.exists() for path in kept)


def test_a_run_of_which_nothing_was_finite_says_so(capsys):
    assert cli.main(["run", *QUICK, "local.lr=1e38", "rounds=2"]) == 1
    said = complaint(capsys)
    assert said.startswith("fedexp: no update of any round was finite, so all were dropped")
    assert Path("run/summary.json").exists()


def test_one_update_that_counts_is_enough():
    from fedexp.files.run_tables import all_dropped

    assert all_dropped(pd.DataFrame({"participants": [2, 3], "aggregator.dropped": [2, 3]}))
    assert not all_dropped(pd.DataFrame({"participants": [2, 3], "aggregator.dropped": [2, 2]}))
    assert not all_dropped(pd.DataFrame({"participants": [0], "aggregator.dropped": [0]}))
