"""What Weights & Biases would send, read back from its files; nothing is sent anywhere."""

import json
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tracking import FAST, PATIENT, run, said, start_and_kill

from fedexp.cli import main
from fedexp.parts.tracker import memo
from fedexp.parts.tracker.contract import Order
from fedexp.parts.tracker.wandb import WandB, WandbRun
from fedexp.parts.tracker.wandb_log import BLOCK, last_step, read_records

pytestmark = pytest.mark.skipif(find_spec("wandb") is None, reason="wandb is not installed")


def read(folder: Path) -> dict[str, Any]:
    """Everything that lies in the files of a run, in the order in which it was written."""
    found: dict[str, Any] = {"rounds": [], "summary": {}, "config": {}, "exits": [], "files": set(), "ids": set()}
    for path in sorted(folder.parent.glob("wandb/offline-run-*/*.wandb")):
        for record in read_records(path):
            kind = record.WhichOneof("record_type")
            if kind == "history":
                cells = {
                    "/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item
                }
                found["rounds"].append((record.history.step.num, cells))
            elif kind == "summary":
                updates = record.summary.update
                found["summary"] |= {
                    "/".join(each.nested_key) or each.key: json.loads(each.value_json) for each in updates
                }
            elif kind == "run":
                found["config"] |= {each.key: json.loads(each.value_json) for each in record.run.config.update}
                found["ids"].add((record.run.run_id, record.run.project))
            elif kind == "exit":
                found["exits"].append(record.exit.exit_code)
        files = path.parent / "files"
        found["files"] |= {each.relative_to(files).as_posix() for each in files.rglob("*") if each.is_file()}
    return found


def test_rounds_config_summary_and_files_without_a_network():
    folder = run("tracker=wandb", "rounds=3", "pictures=true", "tracker.project=mine")
    found, table = read(folder), pd.read_csv(folder / "metrics.csv")
    assert [number for number, _ in found["rounds"]] == [1, 2, 3]
    assert [cells["test_loss"] for _, cells in found["rounds"]] == pytest.approx(table["test_loss"].tolist())
    assert found["config"]["scenario.participants"] == 10
    assert found["config"]["fedexp"]["versions.torch"]
    assert found["exits"] == [0]
    assert "requirements.txt" not in found["files"]
    assert found["ids"] == {(memo.load(folder, "wandb").token, "mine")}
    assert {"curves.png", "federation.png"} <= found["files"]
    accuracy = json.loads((folder / "summary.json").read_text())["final_accuracy"]
    assert found["summary"]["summary/final_accuracy"] == pytest.approx(accuracy)
    assert [line.partition(" at ")[0] for line in said(folder, "wandb")] == [
        f"wandb: run {memo.load(folder, 'wandb').token}"
    ]


def folders_of(folder: Path) -> list[Path]:
    """The folders of the files of a run, in the order in which they were made."""
    return sorted(folder.parent.glob("wandb/offline-run-*"))


def test_what_has_arrived_is_not_sent_again():
    folder = run("tracker=wandb", "rounds=4")
    before = folders_of(folder)
    memo.save(folder, replace(memo.load(folder, "wandb"), round=2))  # as if the sender had died before it noted them
    assert main(["resume", str(folder)]) == 0
    assert [number for number, _ in read(folder)["rounds"]] == [1, 2, 3, 4]
    assert folders_of(folder) == before, "nothing was to be sent"
    assert memo.load(folder, "wandb").round == 4
    assert main(["compare", "outputs"]) == 2  # its folders are no runs


def test_after_a_kill_every_round_is_there_once():
    folder = start_and_kill(Path("outputs/killed"), *FAST, PATIENT, "tracker=wandb", "rounds=150", "checkpoint_s=0")
    assert main(["resume", str(folder)]) == 0
    assert sorted(number for number, _ in read(folder)["rounds"]) == [*range(1, 151)]
    assert read(folder)["exits"] == [0]
    assert len(read(folder)["ids"]) == 1


def test_rounds_that_wandb_had_not_written_are_sent_again():
    folder = run("tracker=wandb", "rounds=40")
    [path] = folder.parent.glob("wandb/offline-run-*/*.wandb")
    path.write_bytes(path.read_bytes()[:BLOCK])
    assert 0 < last_step(folder.parent / "wandb", memo.load(folder, "wandb").token, "fedexp") < 40
    assert main(["resume", str(folder), "tracker=wandb", PATIENT]) == 0
    assert [number for number, _ in read(folder)["rounds"]] == [*range(1, 41)]
    assert read(folder)["summary"]


def test_another_project_gets_everything_and_so_does_a_new_folder():
    folder = run("tracker=wandb", "rounds=2")
    assert main(["resume", str(folder), "tracker=wandb", "tracker.project=other", PATIENT]) == 0
    [_, other] = folders_of(folder)
    assert [number for number, _ in read(folder)["rounds"]] == [1, 2, 1, 2]
    assert "curves.png" not in read(folder)["files"]
    assert last_step(folder.parent / "wandb", memo.load(folder, "wandb").token, "other") == 2
    shutil.rmtree(folder.parent / "wandb")
    assert main(["resume", str(folder), "tracker=wandb", PATIENT]) == 0
    assert [number for number, _ in read(folder)["rounds"]] == [1, 2]
    assert read(folder)["summary"]
    assert not other.exists()


def test_a_service_that_does_not_answer_is_told_though_the_files_have_all():
    folder = run("tracker=wandb", "rounds=2")
    words = ("tracker=wandb", "tracker.mode=online", "tracker.url=http://127.0.0.1:9", "tracker.patience_s=1")
    assert main(["resume", str(folder), *words]) == 0
    assert said(folder, "wandb")[-1] == (
        "wandb: whether all has arrived is not known; fedexp resume outputs/run sends what is missing"
    )


class Service:
    """A run at the service as `wandb.init` gives it, which has some steps already."""

    url, dir = "https://wandb.example/team/mine/runs/token", "nowhere"

    def __init__(self, steps: int) -> None:
        self.starting_step = steps + 1 if steps else 0


@pytest.mark.parametrize(("there", "has_files"), [(0, False), (3, False), (4, True), (5, True)])
def test_the_service_says_which_rounds_it_has(there: int, has_files: bool, tmp_path: Path):
    state = memo.SyncState("wandb", "token", run="token", place="before", round=4, files=True)
    receiver = WandbRun(WandB(mode="online"), Order(tmp_path), state)
    vars(receiver)["run"] = Service(there)
    assert receiver.begin() == replace(state, place=Service.url, round=there, files=has_files)


@pytest.mark.parametrize("rounds", [3, 40])
def test_what_is_unfinished_at_the_end_of_a_file_is_no_record(rounds: int):
    folder = run("tracker=wandb", f"rounds={rounds}")
    [path] = folder.parent.glob("wandb/offline-run-*/*.wandb")
    content, complete = path.read_bytes(), [*read_records(path)]
    assert len(content) > BLOCK or rounds == 3, "no record stands in two blocks"
    for end in (len(content) - 3, len(content) // 2, 9, 7, 0):
        path.write_bytes(content[:end])
        fewer = [*read_records(path)]
        assert len(fewer) < len(complete)
        assert fewer == complete[: len(fewer)]


def test_no_link_is_followed(tmp_path: Path):
    Path("outputs").mkdir()
    Path("outputs/wandb").symlink_to(tmp_path)
    folder = run("tracker=wandb", "rounds=1")
    assert not list(tmp_path.glob("offline*"))
    assert any("must be a folder, but is a link" in line for line in said(folder, "wandb"))


def test_a_folder_names_an_address_only_if_it_sends_there():
    assert WandB().named_addresses == ()
    online = WandB(mode="online", entity="team", project="mine", url="https://wandb.example/")
    assert online.named_addresses == ("https://wandb.example/team/mine",)
