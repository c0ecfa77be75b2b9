"""Tables and states that disagree: a resumed run goes back to where all agree, or says what to do; never a gap."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from command_line import complaint
from composing import MADE, TINY
from kept import kept_bytes

from fedexp.cli import main
from fedexp.config import saved_config
from fedexp.core.errors import ConfigError
from fedexp.run.run import complete

ROUNDS = 6
TABLES = ("metrics.csv", "clients.csv", "digests.csv")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six rounds with states after 6, 5 and 2."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    words = (*MADE, *TINY, f"rounds={ROUNDS}", "keep_states=2", "checkpoint_s=0", f"hydra.run.dir={folder}")
    assert main(["run", *words]) == 0
    (folder / "states" / "000004.pt").unlink()
    (folder / "states" / "000006.pt").unlink()
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy that has still to end."""
    shutil.copytree(whole, tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    return tmp_path / "run"


def cut(path: Path, last: int) -> None:
    """Leaves the lines up to a round."""
    header, *rows = path.read_text().splitlines(True)
    path.write_text("".join([header, *(row for row in rows if int(row.split(",")[0]) <= last)]))


def without(path: Path, number: int) -> None:
    """Takes the lines of one round away."""
    path.write_text("".join(row for row in path.read_text().splitlines(True) if not row.startswith(f"{number},")))


def said(folder: Path) -> str:
    return (folder / "fedexp.log").read_text()


def is_whole(folder: Path, whole: Path) -> bool:
    others = all((folder / name).read_bytes() == (whole / name).read_bytes() for name in TABLES[1:])
    return others and kept_bytes(folder) == kept_bytes(whole) and (folder / "summary.json").is_file()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(("last", "back_to"), [(5, 5), (4, 2), (2, 2)])
def test_a_table_that_ends_before_the_state_takes_the_run_back(
    folder: Path, whole: Path, name: str, last: int, back_to: int
):
    cut(folder / name, last)
    assert main(["resume", str(folder)]) == 0
    assert f"is of round 6, but {name} is whole up to round {last} only" in said(folder)
    assert f"falling back to the state after round {back_to}\n" in said(folder)
    assert f"continuing after round {back_to}\n" in said(folder)
    assert is_whole(folder, whole)


def nonsense(path: Path) -> None:
    path.write_text("no table at all\n")


def shorter(path: Path) -> None:
    """The second line loses its last cell."""
    rows = path.read_text().splitlines(True)
    rows[1] = rows[1].rpartition(",")[0] + "\n"
    path.write_text("".join(rows))


def in_words(path: Path) -> None:
    path.write_text(path.read_text().replace("\n1,", "\none,"))


def other_encoding(path: Path) -> None:
    path.write_bytes(path.read_text().encode("utf-16"))


def without_a_column(path: Path) -> None:
    path.write_text("".join(f"{row.rpartition(',')[0]}\n" for row in path.read_text().splitlines()))


BEYOND_USE = {
    "cut": lambda path: cut(path, 1),
    "emptied": lambda path: path.write_text(""),
    "gone": lambda path: path.unlink(),
    "a gap": lambda path: without(path, 2),
    **{damage.__name__: damage for damage in (nonsense, shorter, in_words, other_encoding)},
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("damage", BEYOND_USE.values(), ids=BEYOND_USE)
def test_where_no_state_agrees_one_line_tells_the_cure_and_nothing_changes(
    folder: Path, name: str, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
):
    damage(folder / name)
    before = {
        path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix in (".csv", ".pt")
    }
    assert main(["resume", str(folder)]) == 2
    told = complaint(capsys)
    assert f"state.pt is of round 6, but {name} is whole up to round " in told
    assert "; put the files back as they were, or delete the states to begin again" in told
    assert {path: path.read_bytes() for path in before} == before
    assert not (folder / "summary.json").exists()


@pytest.mark.parametrize("name", ["clients.csv", "digests.csv"])
def test_a_table_without_a_column_is_none(folder: Path, name: str, capsys: pytest.CaptureFixture[str]):
    without_a_column(folder / name)
    assert main(["resume", str(folder)]) == 2
    assert f"but {name} is whole up to round 0 only" in complaint(capsys)


def test_the_cure_helps(folder: Path, whole: Path):
    (folder / "clients.csv").unlink()
    for path in [*folder.glob("state*.pt"), *(folder / "states").iterdir()]:
        path.unlink()
    (folder / "metrics.csv").write_bytes(b"\xff\n")
    assert main(["resume", str(folder)]) == 0
    assert is_whole(folder, whole)


def test_a_state_of_other_models_is_not_believed(folder: Path, whole: Path):
    content = torch.load(folder / "state.pt", weights_only=True)
    content["models"][0][0][3] += 1.0
    torch.save(content, folder / "state.pt")
    assert main(["resume", str(folder)]) == 0
    assert "state.pt holds other models than digests.csv says of round 6; falling back to the state after round 5" in (
        said(folder)
    )
    assert is_whole(folder, whole)


def test_a_memory_that_no_round_can_begin_from_is_told_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str]):
    for name in TABLES:
        cut(folder / name, 5)
    shutil.copyfile(folder / "state.previous.pt", folder / "state.pt")
    content = torch.load(folder / "state.pt", weights_only=True)
    content["memory"]["aggregator"] = {"0": 3}
    torch.save(content, folder / "state.pt")
    assert main(["resume", str(folder)]) == 2
    told = complaint(capsys)
    assert "cannot go on from its state after round 5: " in told
    assert "delete state.pt to go on from the state before it" in told


def test_so_it_is_with_two_workers(folder: Path):
    for name in TABLES:
        cut(folder / name, 5)
    content = torch.load(folder / "state.previous.pt", weights_only=True)
    content["memory"]["aggregator"] = {"0": 3}
    torch.save(content, folder / "state.pt")
    config = saved_config.read(folder).config
    with pytest.raises(ConfigError, match="cannot go on from its state after round 5: "):
        complete({**config, "engine": {**config["engine"], "workers": 2}}, folder)


def test_a_state_that_was_to_stay_is_kept_where_the_kill_came_between(folder: Path):
    assert main(["resume", str(folder)]) == 0
    kept = torch.load(folder / "states" / "000006.pt", weights_only=True)
    assert kept["round"] == ROUNDS
    newest = torch.load(folder / "state.pt", weights_only=True)
    assert all(torch.equal(one, other) for (one, _), (other, _) in zip(kept["models"], newest["models"], strict=True))


def test_what_is_kept_late_is_the_state_that_the_run_goes_on_from(tmp_path: Path):
    """Killed before the state after round 4 was kept; the newer one is damaged since."""
    folder = tmp_path / "run"
    words = (*MADE, *TINY, "rounds=5", "keep_states=2", "checkpoint_s=0", f"hydra.run.dir={folder}")
    assert main(["run", *words]) == 0
    (folder / "summary.json").unlink()
    (folder / "states" / "000004.pt").unlink()
    (folder / "state.pt").write_bytes(b"damaged")
    assert main(["resume", str(folder)]) == 0
    assert torch.load(folder / "states" / "000004.pt", weights_only=True)["round"] == 4


def test_clusters_that_the_run_did_not_write_take_it_back(tmp_path: Path):
    folder = tmp_path / "run"
    words = (*MADE, *TINY, "rounds=3", "clustering=ifca", "checkpoint_s=0", f"hydra.run.dir={folder}")
    assert main(["run", *words]) == 0
    (folder / "summary.json").unlink()
    table, digests = (folder / "clusters.csv").read_text(), (folder / "digests.csv").read_text()
    (folder / "clusters.csv").write_text(table[: table.rstrip("\n").rfind("\n") + 1])
    assert main(["resume", str(folder)]) == 0
    assert "clusters.csv is whole up to round 2 only; falling back to the state after round 2\n" in said(folder)
    assert ((folder / "clusters.csv").read_text(), (folder / "digests.csv").read_text()) == (table, digests)
