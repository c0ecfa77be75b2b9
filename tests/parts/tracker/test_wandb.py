"""What Weights & Biases would send, read back from its files; nothing is sent anywhere."""

import json
import struct
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tracking import run, said

from fedexp.cli import main
from fedexp.parts.tracker import memo
from fedexp.parts.tracker.wandb import WandB

pytestmark = pytest.mark.skipif(find_spec("wandb") is None, reason="wandb is not installed")
BLOCK, HEAD = 32768, 7  # of the log that a .wandb file is


def records(path: Path) -> list[Any]:
    """The records of a .wandb file: a header, and blocks of pieces (checksum, length, kind)."""
    from wandb.proto import wandb_internal_pb2

    content, position, text, found = path.read_bytes(), HEAD, b"", []
    while position + HEAD <= len(content):
        if BLOCK - position % BLOCK < HEAD:  # what is left of a block is filled
            position += BLOCK - position % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", content, position)
        position += HEAD
        text += content[position : position + length]
        position += length
        if kind in (1, 4):  # whole, or the last piece
            found.append(vars(wandb_internal_pb2)["Record"]())
            found[-1].ParseFromString(text)
            text = b""
    return found


def read(folder: Path) -> dict[str, Any]:
    """Everything that lies in the files of a run, in the order in which it was written."""
    found: dict[str, Any] = {"rounds": [], "summary": {}, "config": {}, "exits": [], "files": set(), "ids": set()}
    for path in sorted(folder.parent.glob("wandb/offline-run-*/*.wandb")):
        for record in records(path):
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
    assert found["ids"] == {(memo.load(folder, "wandb").token, "mine")}
    assert {"curves.png", "federation.png"} <= found["files"]
    accuracy = json.loads((folder / "summary.json").read_text())["final_accuracy"]
    assert found["summary"]["summary/final_accuracy"] == pytest.approx(accuracy)
    assert [line.partition(" at ")[0] for line in said(folder, "wandb")] == [
        f"wandb: run {memo.load(folder, 'wandb').token}"
    ]


def test_what_has_arrived_is_not_sent_again():
    folder = run("tracker=wandb", "rounds=4")
    memo.save(folder, replace(memo.load(folder, "wandb"), round=2, files=False))
    assert main(["resume", str(folder)]) == 0
    assert [number for number, _ in read(folder)["rounds"]] == [1, 2, 3, 4, 3, 4]
    assert len(read(folder)["ids"]) == 1
    assert main(["compare", "outputs"]) == 2  # its folders are no runs


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
