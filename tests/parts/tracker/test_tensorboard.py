"""The event files, read back as TensorBoard reads them."""

import json
import shutil
import warnings
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image
from run_folders import change_config
from tracking import FAST, PATIENT, run, said

from fedexp.cli import main
from fedexp.parts.tracker import memo

pytestmark = pytest.mark.skipif(find_spec("tensorboard") is None, reason="tensorboard is not installed")


def read(folder: Path) -> dict:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0})
        events.Reload()
    tags = events.Tags()
    texts = [tag for tag in tags["tensors"] if tag.endswith("/text_summary")]
    return {
        "scalars": {tag: [(each.step, each.value) for each in events.Scalars(tag)] for tag in tags["scalars"]},
        "texts": {tag: events.Tensors(tag)[0].tensor_proto.string_val[0].decode() for tag in texts},
        "pictures": {tag: [(each.width, each.height) for each in events.Images(tag)] for tag in tags["images"]},
        "tensors": {tag: len(events.Tensors(tag)) for tag in tags["tensors"]},
    }


def test_metrics_config_tags_and_pictures():
    folder = run("tracker=tensorboard", "rounds=3", "pictures=true")
    found, table = read(folder), pd.read_csv(folder / "metrics.csv")
    assert [step for step, _ in found["scalars"]["test_loss"]] == [1, 2, 3]
    assert [value for _, value in found["scalars"]["test_loss"]] == pytest.approx(table["test_loss"].tolist())
    accuracy = json.loads((folder / "summary.json").read_text())["final_accuracy"]
    assert found["scalars"]["summary/final_accuracy"] == [(4, pytest.approx(accuracy))]
    assert "| aggregator | fedavg |" in found["texts"]["config/text_summary"]
    assert "| scenario.participants | 10 |" in found["texts"]["config/text_summary"]
    assert "| versions.torch |" in found["texts"]["tags/text_summary"]
    with Image.open(folder / "curves.png") as picture:
        assert found["pictures"]["curves"] == [picture.size]
    assert found["tensors"] == {"config/text_summary": 1, "tags/text_summary": 1, "_hparams_/session_start_info": 1}
    assert [line.partition(" at ")[0] for line in said(folder, "tensorboard")] == ["tensorboard: run tensorboard"]


def test_a_finished_run_that_is_resumed_loses_and_doubles_nothing():
    folder = run("tracker=tensorboard", "rounds=2")
    before = read(folder)
    assert main(["resume", str(folder)]) == 0
    assert len(list((folder / "tensorboard").iterdir())) == 2
    assert read(folder) == before


def test_what_was_written_and_not_noted_is_written_once_again():
    folder = run("tracker=tensorboard", "rounds=6")
    before = read(folder)
    memo.save(folder, replace(memo.load(folder, "tensorboard"), round=4, files=False))
    assert main(["resume", str(folder)]) == 0
    assert read(folder) == before


def test_what_ended_without_a_tracker_may_get_one():
    """A run of earlier days: no tracker in its config, a summary that must stay as it is."""
    folder = run("rounds=3", "tracker=none")
    change_config(folder, lambda config: config.pop("tracker"))
    summary = (folder / "summary.json").read_bytes()
    assert main(["resume", str(folder)]) == 0
    assert not (folder / "tensorboard").exists()
    assert main(["resume", str(folder), "tracker=tensorboard", PATIENT]) == 0
    found = read(folder)
    assert [step for step, _ in found["scalars"]["test_loss"]] == [1, 2, 3]
    assert "| versions.torch |" in found["texts"]["tags/text_summary"]
    assert (folder / "summary.json").read_bytes() == summary


def test_a_sweep_and_all_that_is_missing_of_it_may_get_one():
    many = Path("outputs/many")
    words = (*FAST, "tracker=none", "rounds=2", "seed=0,1", f"hydra.sweep.dir={many}")
    assert main(["run", "-m", *words]) == 0
    shutil.rmtree(many / "1")
    assert main(["resume", str(many), "tracker=tensorboard", PATIENT]) == 0
    for point in ("0", "1"):
        assert [step for step, _ in read(many / point)["scalars"]["test_loss"]] == [1, 2]


def test_only_trackers_that_exist():
    folder = run("rounds=1", "tracker=none")
    assert main(["resume", str(folder), "tracker=tensorbord"]) == 2
    assert main(["resume", str(folder), "seed=3"]) == 2


def test_a_run_whose_folder_is_gone_is_sent_again():
    folder = run("tracker=tensorboard", "rounds=2")
    before = read(folder)
    shutil.rmtree(folder / "tensorboard")
    assert main(["resume", str(folder)]) == 0
    assert read(folder) == before
