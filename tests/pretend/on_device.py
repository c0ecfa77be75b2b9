"""Runs on a device, each beside the same run on the CPU: the pretend one (see test_pretend.py), or a GPU at hand.

On a GPU: `pytest tests/pretend/on_device.py`.
"""

import gc
import json
import os
import re
import socket
import sys
from contextlib import nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from composing import experiment, options, tiny
from hydra.errors import HydraException
from own_targets import told
from pandas.testing import assert_frame_equal
from processes import Command
from test_every_option import NEEDS, OPTIONS, REAL, TARGETS
from worlds import first_round, world_of

from fedexp.cli import main
from fedexp.core.errors import ConfigError
from fedexp.run.run import complete, run
from fedexp.simulation.setup import compatibility
from fedexp.training.stacked import trainer as stacked
from fedexp.training.stacked.graph_cache import MAX_GRAPHS, GraphShape
from fedexp.training.workers.pool import pickle_value, unpickle_value

pretend: Any = sys.modules.get("pretend_device")  # its plugin imports it first of all
DEVICE = "cuda" if pretend is None else "pretend"
on_gpu = pytest.mark.skipif(pretend is not None, reason="needs a GPU")
pretended = pytest.mark.skipif(pretend is None, reason="needs the pretend device")
BUNDLES = ("algorithm", "partition", "setting", "experiment")  # they choose options of other groups
APART = ("dataset", "tracker", "hydra", "engine", "loss", "model")  # with cases of their own, or no matter of a device
SEEN = re.compile("train_loss|test_|personal_|mb_|epsilon|participants|examples|lr$")
IMAGES = "dataset.shape=[1,8,8]"


def groups() -> list[str]:
    """The groups whose options are mixed."""
    return sorted({option.partition("=")[0] for option in OPTIONS} - {*BUNDLES, *APART})


def stands(words: tuple[str, ...]) -> bool:
    """Whether the parts can work together."""
    try:
        compatibility.refuse(experiment(*composed(words)))
    except (ConfigError, HydraException):
        return False
    return True


def composed(words: tuple[str, ...]) -> tuple[str, ...]:
    return ("dataset=synthetic", "dataset.train_size=150", "dataset.test_size=60", IMAGES, "scenario.clients=6", *words)


@cache
def mixtures() -> list[tuple[str, ...]]:
    """Few lists of words in which every option of every group stands at least once, each a run that is possible."""
    left = {group: [f"{group}={name}" for name in options(group)] for group in groups()}
    left = {group: [option for option in names if option not in REAL] for group, names in left.items()}
    found = []
    while any(left.values()):
        words: tuple[str, ...] = ()
        for names in left.values():
            words += next((more for option in names if (more := fitting(words, option)) is not None), ())
        taken = {option for names in left.values() for option in names if option in words}
        if not taken:
            break
        found.append(words)
        left = {group: [option for option in names if option not in taken] for group, names in left.items()}
    return found


def fitting(words: tuple[str, ...], option: str) -> tuple[str, ...] | None:
    """The option with what it needs, where it can stand beside these words."""
    if option in words:
        return ()
    new = (option, *(word for word in NEEDS.get(option, ()) if word not in (*words, IMAGES)))
    keys = {word.partition("=")[0] for word in words}
    clash = any(word.partition("=")[0] in keys for word in new)
    return new if not clash and stands((*words, *new)) else None


def measured(config: dict[str, Any], folder: Path, device: str) -> pd.DataFrame:
    """What a run on a device says in every round."""
    run({**config, "engine": {**config["engine"], "device": device}}, folder)
    table = pd.read_csv(folder / "metrics.csv")
    return table.loc[:, [name for name in table.columns if SEEN.search(name)]]


def measures(folder: Path) -> pd.DataFrame:
    """The losses and accuracies of a run."""
    return pd.read_csv(folder / "metrics.csv").loc[:, ["train_loss", "test_loss", "test_accuracy"]]


def the_same(config: dict[str, Any], folder: Path) -> None:
    """Compares with a CPU. Of DP-SGD, of which a GPU draws other noise, with one client after another on the GPU."""
    alone = pretend is None and config["privacy"]["_target_"].endswith("DPSGD")
    loop = {**config["engine"], "_target_": "fedexp.training.engine.contract.LoopEngine"}
    here = measured({**config, "engine": loop} if alone else config, folder / "here", DEVICE if alone else "cpu")
    there = measured(config, folder / "there", DEVICE)
    assert_frame_equal(here, there, atol=2e-4, rtol=1e-3)


@pretended
def test_the_device_is_as_strict_as_a_gpu():
    x = torch.ones(3, device="pretend")
    with pytest.raises(TypeError, match="can't convert pretend"):
        x.numpy()
    with pytest.raises(RuntimeError, match="two devices"):
        _ = x + torch.ones(3)
    with pytest.raises(RuntimeError, match="two devices"):
        _ = x.to("pretend:1") + x
    with pytest.raises(RuntimeError, match="device type for generator"):
        x.uniform_(generator=torch.Generator())
    with pytest.raises(RuntimeError, match="capturing"), pretend.graph(pretend.CUDAGraph()):
        x.sum().item()


def test_every_option_is_in_some_mixture():
    mixed = {word for words in mixtures() for word in words}
    assert not [option for option in OPTIONS if option.partition("=")[0] in groups() and option not in mixed | REAL]


@pytest.mark.parametrize("number", range(len(mixtures())))
def test_mixtures_of_options(tmp_path: Path, number: int):
    words, engine = mixtures()[number], "loop" if number % 5 == 0 else "stacked"
    if engine == "stacked":  # which changes all images of a batch at once
        words = tuple(word for word in words if word != "augment=transforms")
    print(*words)  # noqa: T201 - which they were, where it fails
    the_same(tiny(*composed(words), f"engine={engine}"), tmp_path)


@pytest.mark.usefixtures("_narrow")
@pytest.mark.parametrize("option", [f"model={name}" for name in options("model")])
def test_models(tmp_path: Path, option: str):
    the_same(tiny(option, *NEEDS.get(option, ()), "engine=stacked"), tmp_path)


UNEQUAL = (
    "dataset.train_size=60",
    "federation=dirichlet",
    "federation.alpha=1",
    "local.batch_size=7",
    "engine=stacked",
)
WRITTEN = {
    **{
        name: (f"local={name}", "model=simple_cnn", "dataset.shape=[3,8,8]")
        for name in options("local")
        if name != "fedem"
    },
    "momentum": ("local.momentum=0.9", "local.worker_momentum=true", "local.clip_norm=0.1"),
    "adam at a moving rate": ("local=adam", "schedule=cosine", "local.epochs=2"),
    "one of another length": ("local.epochs=[1,4]", "local.momentum=0.9"),
    "scaffold": ("algorithm=scaffold", "local.momentum=0.9", "local.epochs=3"),
    "fedplus": ("algorithm=fedplus", "local.mix=epoch", "local.epochs=2"),
    "batch norm": ("model=complex_cnn", "dataset.shape=[1,8,8]"),
    "group norm": ("model=complex_cnn", "model.norm=group", "dataset.shape=[1,8,8]"),
    "dropout": ("model=two_conv_dropout", "dataset.shape=[1,16,16]"),
    "dropout of values": ("model=keras_cnn", "dataset.shape=[1,8,8]"),
    "signals": ("model=har_cnn", "dataset.shape=[3,16]"),
    "augmented": ("augment=crop_flip", "model=simple_cnn", "dataset.shape=[3,8,8]"),
    "smoothed": ("loss.label_smoothing=0.1",),
    "little memory": ("model=simple_cnn", "dataset.shape=[3,8,8]", "engine.memory_mb=0.2"),
}


@pytest.mark.usefixtures("_narrow")
@pytest.mark.parametrize("name", WRITTEN)
def test_passes_that_are_written_out_train_as_vmap_does(name: str, monkeypatch: pytest.MonkeyPatch):
    ends = []
    for way in ("written", "vmap"):
        if way == "vmap":
            monkeypatch.setattr(stacked, "plan_layers", lambda *_: None)
        config = tiny(*UNEQUAL, *WRITTEN[name])
        world = world_of({**config, "engine": {**config["engine"], "device": DEVICE}})
        trainer, task = world.trainer, first_round(world)
        assert isinstance(trainer, stacked.StackedTrainer)
        assert (trainer.plan is not None) == (way == "written" and trainer.objective.is_loss_alone)
        groups = trainer.groups(task, 1)
        turns = [[trainer.run(task, group).cpu() for group in groups] for _ in range(2)]
        ends.append(torch.cat(turns[1]))  # a replay of what the first turn has captured
    torch.testing.assert_close(ends[0], ends[1], atol=2e-5, rtol=1e-4, equal_nan=True)


@pytest.mark.usefixtures("_narrow")
@pytest.mark.parametrize("name", ["sgd", "dropout", "dropout of values", "signals", "little memory"])
def test_in_bfloat16_the_written_out_passes_train_as_autocast_does_on_a_cpu(name: str, monkeypatch: pytest.MonkeyPatch):
    words, ends = (*UNEQUAL, *WRITTEN[name], "engine.precision=bf16"), []
    for config in (tiny(*words, "engine=loop"), tiny(*words)):
        world = world_of({**config, "engine": {**config["engine"], "device": DEVICE if ends else "cpu"}})
        trainer, task = world.trainer, first_round(world)
        rows = [np.array([row]) for row in range(len(task.batches))]
        turns = [torch.cat([trainer.run(task, row).cpu() for row in rows]) for _ in range(2)]
        ends.append(turns[1][:, :-2] - world.first.flat.cpu())  # of a replay of what the first turn has captured
        if pretend is not None:  # it has no autocast, which only networks that are tried or measured need
            monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    assert isinstance(trainer, stacked.StackedTrainer)
    assert trainer.plan is not None
    assert trainer.plan.bf16
    # without AVX-512, PyTorch's products of bfloat16 round their sums where the order of the factors has it; a GPU's
    # are taken in another order
    limit = 5e-3 if "AVX512" in torch.backends.cpu.get_cpu_capability() else 2e-2
    limit = limit if pretend is not None else 5e-2
    assert (ends[0] - ends[1]).norm() < limit * ends[0].norm()


@pytest.mark.parametrize("name", options("loss"))
def test_losses(tmp_path: Path, name: str):
    config = tiny(f"loss={name}", *NEEDS.get(f"loss={name}", ()), "engine=stacked")
    the_same(told(config, TARGETS[name], name) if name in TARGETS else config, tmp_path)


@pytest.mark.parametrize("option", [f"dataset={name}" for name in ("digits", "diabetes", "leaf_synthetic")])
def test_datasets(tmp_path: Path, option: str):
    the_same(tiny(option, "engine=stacked"), tmp_path)


DROPOUT = ("model=two_conv_dropout", "dataset.shape=[1,16,16]", "engine=stacked", "rounds=4", f"engine.device={DEVICE}")


def interrupted(config: dict[str, Any], folder: Path, after: int) -> None:
    """A run that somebody ends after so many rounds."""

    def watch(row: dict[str, Any]) -> None:
        if row["round"] == after:
            raise KeyboardInterrupt

    folder.mkdir()
    with pytest.raises(KeyboardInterrupt):
        complete(config, folder, watch)


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_resume_with_dropout(tmp_path: Path, engine: str):
    """The capture's warm-up draws nothing of what training draws."""
    config = tiny(*DROPOUT, f"engine={engine}", "checkpoint_s=0")
    run(config, tmp_path / "whole")
    interrupted(config, tmp_path / "halves", 2)
    complete(config, tmp_path / "halves")
    assert_frame_equal(measures(tmp_path / "whole"), measures(tmp_path / "halves"), check_exact=True)


@on_gpu
@pytest.mark.parametrize("name", ["mlp", "simple_cnn", "cnn_2017", "complex_cnn", "pfl_cnn", "vgg11", "resnet18_gn"])
@pytest.mark.usefixtures("_narrow")
def test_equal_runs_have_equal_bytes(tmp_path: Path, name: str):
    config = tiny(*UNEQUAL, f"model={name}", "dataset.shape=[3,32,32]", "dataset.train_size=300", "rounds=3")
    first, second = (measured(config, tmp_path / place, DEVICE) for place in ("first", "second"))
    assert_frame_equal(first, second, check_exact=True)


@on_gpu
def test_where_the_memory_ends_half_of_the_clients_train_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    words = ("model=pfl_cnn", "dataset.shape=[3,32,32]", "dataset.train_size=800", "scenario.clients=16")
    config = tiny("engine=stacked", *words, "scenario.participants=16", "rounds=2")
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    whole = measured(config, tmp_path / "whole", DEVICE)
    needed, total = torch.cuda.max_memory_reserved(), torch.cuda.get_device_properties(0).total_memory
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    torch.cuda.set_per_process_memory_fraction((before + 0.85 * (needed - before)) / total)
    try:
        halves = measured(config, tmp_path / "halves", DEVICE)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert "the GPU's memory is too small for 16 clients at once; 8 are trained instead" in caplog.text
    assert_frame_equal(whole, halves, atol=2e-4, rtol=1e-3)


@pretended
def test_the_second_gpu_trains_as_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = tiny("engine=stacked")
    first = measured(config, tmp_path / "first", "pretend")
    monkeypatch.setenv("LOCAL_RANK", "1")
    second = measured(config, tmp_path / "second", "pretend")
    assert pretend.current_device() == 1
    assert_frame_equal(first, second)


@pretended
def test_a_rank_without_a_gpu_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(
        ConfigError, match="LOCAL_RANK must be the number of a GPU, below 2, got 2; unset it, start torchrun"
    ):
        measured(tiny(), tmp_path, "pretend")


@pretended
def test_what_another_rank_tells_comes_to_ones_own_device():
    value = {"row": torch.ones(2, device="pretend:0"), "host": torch.zeros(2), "name": "x"}
    found = unpickle_value(pickle_value(value), torch.device("pretend", 1))
    assert found["row"].device == torch.device("pretend", 1)
    assert found["host"].device == torch.device("cpu")
    assert found["row"].cpu().tolist() == [1, 1]
    assert found["name"] == "x"


@pretended
def test_two_ranks_train_as_one(tmp_path: Path):
    """Both train: what one of them leaves out would be missing in the sum."""
    words = ("dataset.train_size=240", "scenario.clients=8", "scenario.participants=8", "rounds=3", "engine=stacked")
    config = ("dataset=synthetic", "dataset.test_size=60", "pictures=false", "engine.memory_mb=0.05", *words)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}  # as torchrun tells each
    ranks = [
        Command(tmp_path, "run", *config, "hydra.run.dir=two", environment={**os.environ, **started, **rank})
        for rank in ({"RANK": str(number), "LOCAL_RANK": str(number)} for number in range(2))
    ]
    assert main(["run", *config, f"hydra.run.dir={tmp_path / 'one'}"]) == 0
    for rank in ranks:
        rank.finish()
    assert_frame_equal(measures(tmp_path / "one"), measures(tmp_path / "two"))


def test_few_steps_are_captured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Poisson-sampled batches of clients of all sizes have another shape in almost every round."""
    made: list[stacked.CudaGraphCache] = []
    capture = stacked.CudaGraphCache._capture

    def noted(self: stacked.CudaGraphCache, bucket: Any) -> Any:
        made.append(self)
        return capture(self, bucket)

    monkeypatch.setattr(stacked.CudaGraphCache, "_capture", noted)
    words = ("federation=dirichlet", "privacy=dp_sgd", *NEEDS["privacy=dp_sgd"], "engine=stacked", "rounds=12")
    the_same(tiny(*words, "local.batch_size=4", "scenario.participants=4"), tmp_path)
    assert 2 < len(made) <= MAX_GRAPHS


def test_the_shapes_used_last_are_kept():
    made: list[int] = []

    def bucket(size: int) -> Any:
        made.append(size)

    captures = stacked.CudaGraphCache(lambda _: None, lambda _: 0.0, 1.0)
    for size in (
        *range(1, MAX_GRAPHS + 1),
        1,
        MAX_GRAPHS + 1,
    ):  # the second is the one that was not asked for the longest
        captures.get(GraphShape(size, 1, True, 1, 1), partial(bucket, size))
    assert made == [*range(1, MAX_GRAPHS + 2)]
    assert [size for size, *_ in captures.graphs] == [*range(3, MAX_GRAPHS + 1), 1, MAX_GRAPHS + 1]


def test_the_shapes_that_are_kept_fit_in_the_memory():
    captures = stacked.CudaGraphCache(lambda _: None, lambda shape: shape.rows, 10.0)
    for size in (4, 3, 2, 5, 20, 1):
        captures.get(GraphShape(size, 1, True, 1, 1), lambda: None)  # type: ignore[arg-type]
    assert [size for size, *_ in captures.graphs] == [1]
    captures.get(GraphShape(9, 1, True, 1, 1), lambda: None)  # type: ignore[arg-type]
    assert [size for size, *_ in captures.graphs] == [1, 9]


def test_verify_and_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    monkeypatch.chdir(tmp_path)
    words = ["dataset=synthetic", "dataset.train_size=120", "engine=stacked", f"engine.device={DEVICE}", "rounds=2"]
    assert main(["run", *words, "hydra.run.dir=run"]) == 0
    assert main(["verify", "run", "--rounds", "2"]) == 3, "equal within rounding, not bit by bit"
    assert main(["plan", *words]) == 0
    assert "round" in capsys.readouterr().out
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["device"] == ("pretend accelerator" if pretend else torch.cuda.get_device_name())
