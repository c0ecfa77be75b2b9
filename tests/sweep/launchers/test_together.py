"""Points that run together: each comes to what it comes to on its own, whatever becomes of the others."""

import os
import signal
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from composing import tiny
from processes import Command
from sweep.lockstep import alone, close, metrics, same_bytes, together

from fedexp import cli
from fedexp.core.errors import ConfigError
from fedexp.run import run as execution
from fedexp.simulation import rounds
from fedexp.sweep.launchers.together import Together
from fedexp.training.meeting import Meeting
from fedexp.training.stacked import Stacked

GRID = [
    tiny(f"seed={seed}", f"local.lr={lr}", f"selector={selector}", f"aggregator={aggregator}")
    for seed, lr, selector, aggregator in product((0, 1), (0.05, 0.2), ("random", "afl"), ("fedavg", "median"))
]
IMAGES = "dataset.shape=[1,8,8]"
NETWORKS = {
    "DP-SGD": ("privacy=dp_sgd", "privacy.clip=0.5", "privacy.noise_multiplier=0.7", "privacy.delta=1e-3"),
    "dropout": ("model.dropout=0.3",),
    "BatchNorm": ("model=complex_cnn", IMAGES, "scenario.participants=2"),
    "augmented": (IMAGES, "augment=crop_flip"),
    "private momentum": ("local.momentum=0.9", "local.worker_momentum=true"),
    "exact losses": ("evaluation.client_losses=exact",),
    "other models": ("local=moon",),
    "moving rate": ("schedule=cosine",),
}


def stacked(config: dict[str, Any], **engine: Any) -> dict[str, Any]:
    return config | {"engine": config["engine"] | {"_target_": "fedexp.training.engine.StackedEngine"} | engine}


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each stack had that was trained, but for the two of a trainer's first step."""
    seen: list[int] = []
    run = Stacked.run

    def counted(self: Stacked, task: Any, rows: Any) -> torch.Tensor:
        seen.append(len(rows))
        return run(self, task, rows)

    monkeypatch.setattr(Stacked, "run", counted)
    return seen


def test_with_the_loop_the_bytes_are_those_of_runs_on_their_own(tmp_path: Path):
    ends = together(tmp_path / "together", GRID)
    alone(tmp_path / "alone", GRID)
    assert [end.code for end in ends] == [0] * len(GRID)
    for number in range(len(GRID)):
        same_bytes(tmp_path / "together" / str(number), tmp_path / "alone" / str(number))


def test_stacked_the_clients_of_all_train_at_once(tmp_path: Path, stacks: list[int]):
    configs = [stacked(config) for config in GRID]
    together(tmp_path / "together", configs)
    assert [rows for rows in stacks if rows != 2] == [3 * len(GRID)] * 2, "a stack a round"
    alone(tmp_path / "alone", configs)
    for number in range(len(GRID)):
        close(tmp_path / "together" / str(number), tmp_path / "alone" / str(number))


def test_a_stack_of_one_run_has_its_bytes(tmp_path: Path):
    configs = [stacked(tiny())]
    together(tmp_path / "together", configs)
    alone(tmp_path / "alone", configs)
    same_bytes(tmp_path / "together" / "0", tmp_path / "alone" / "0")


@pytest.mark.parametrize("words", NETWORKS.values(), ids=list(NETWORKS))
def test_whatever_clients_train(tmp_path: Path, words: tuple[str, ...]):
    configs = [tiny(*words, f"seed={seed}", f"local.lr={lr}") for seed, lr in ((0, 0.05), (1, 0.1))]
    for compare, each in ((same_bytes, configs), (close, [stacked(config) for config in configs])):
        folder = tmp_path / compare.__name__
        assert [end.code for end in together(folder / "together", each)] == [0, 0]
        alone(folder / "alone", each)
        for number in ("0", "1"):
            compare(folder / "together" / number, folder / "alone" / number)


def test_several_networks_make_several_stacks(tmp_path: Path, stacks: list[int]):
    words = [(f"seed={seed}", f"model={model}") for seed, model in product((0, 1), ("mlp", "logistic"))]
    configs = [stacked(tiny(*each)) for each in words]
    together(tmp_path / "together", configs)
    assert [rows for rows in stacks if rows != 2] == [6] * 4
    alone(tmp_path / "alone", configs)
    for number in range(len(configs)):
        close(tmp_path / "together" / str(number), tmp_path / "alone" / str(number))


def test_few_at_once_are_as_many_in_the_end(tmp_path: Path, stacks: list[int]):
    configs = [stacked(tiny(f"seed={seed}")) for seed in range(5)]
    ends = together(tmp_path, configs, runs=2)
    assert [end.code for end in ends] == [0] * 5
    assert max(stacks) == 6


def test_forks_share_the_points(tmp_path: Path):
    configs = [stacked(tiny(f"seed={seed}")) for seed in range(5)]
    alike = [*configs, *(tiny(f"seed={seed}") for seed in range(5))]
    for folder in ("one", "other"):
        assert [end.code for end in together(tmp_path / folder, alike, jobs=2)] == [0] * 10
    alone(tmp_path / "alone", alike)
    for number in range(10):
        same_bytes(tmp_path / "one" / str(number), tmp_path / "other" / str(number))
        (close if number < 5 else same_bytes)(tmp_path / "one" / str(number), tmp_path / "alone" / str(number))


def test_a_fork_that_dies_is_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    died, judge = tmp_path / "died", rounds.judge

    def dying(exp: Any, world: Any, state: Any, row: Any) -> Any:
        if exp.seed == 4 or (exp.seed == 1 and not died.exists()):
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return judge(exp, world, state, row)

    monkeypatch.setattr(rounds, "judge", dying)
    ends = together(tmp_path, [tiny(f"seed={seed}") for seed in range(6)], jobs=2)
    assert [end.code for end in ends] == [0, 0, 0, 0, 1, 0]
    assert "was killed" in ends[4].message


def test_who_stops_or_fails_leaves_the_others(tmp_path: Path):
    early = ("stop=target", "stop.value=0.05", "evaluation.validation=true")
    words = [
        ("seed=0",),
        early,
        ("server_optimizer=momentum", "server_optimizer.lr=1e39"),
        ("engine.workers=2",),
        ("seed=1",),
    ]
    configs = [stacked(tiny("rounds=4", *each)) for each in words]
    ends = together(tmp_path / "together", configs)
    assert [end.code for end in ends] == [0, 0, 1, 2, 0]
    assert "not finite" in ends[2].message
    assert ends[3].message.startswith("engine.workers must be 1 or auto with hydra/launcher=together, got 2; use")
    assert len(metrics(tmp_path / "together" / "1")) < 4
    alone(tmp_path / "alone", [configs[0], configs[1]])
    for number in ("0", "1"):
        close(tmp_path / "together" / number, tmp_path / "alone" / number)


def test_a_point_that_asks_for_workers_is_refused_before_any_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    words = ("dataset=synthetic", "hydra/launcher=together", "hydra.sweep.dir=there", "engine.workers=1,2")
    assert cli.main(["run", "-m", *words]) == 2
    assert "point 1 (dataset=synthetic engine.workers=2): engine.workers must be 1 or auto" in capsys.readouterr().err
    assert not (tmp_path / "there").exists()
    assert cli.main(["run", "-m", "dataset=synthetic", "rounds=1", "pictures=false", *words[2:]]) == 0
    (tmp_path / "there" / "1" / "summary.json").unlink()
    assert cli.main(["resume", "there", "hydra/launcher=together"]) == 2
    assert "engine.workers must be 1 or auto" in capsys.readouterr().err


def test_a_client_that_breaks_the_pass_breaks_its_run_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = Stacked.run

    def broken(self: Stacked, task: Any, rows: Any) -> torch.Tensor:
        if any(each.round == 2 and each.seed == 1 for each, _ in getattr(task, "origins", ())):
            raise ValueError("no memory")
        return run(self, task, rows)

    monkeypatch.setattr(Stacked, "run", broken)
    ends = together(tmp_path, [stacked(tiny(f"seed={seed}")) for seed in range(3)])
    assert [end.code for end in ends] == [0, 1, 0]
    assert "ValueError: no memory" in ends[1].message


def test_each_log_has_the_lines_of_its_own_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    together(tmp_path, [stacked(tiny(f"rounds={rounds}")) for rounds in (2, 3, 4)])
    for number, count in enumerate((2, 3, 4)):
        log = (tmp_path / str(number) / "fedexp.log").read_text()
        told = [line.split("round ")[1].split()[0] for line in log.splitlines() if " round " in line and "/" in line]
        assert told == [f"{done}/{count}" for done in range(1, count + 1)]
    assert capsys.readouterr().out == ""


def test_a_sweep_logs_every_round_and_can_be_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    made = ("dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60", "scenario.clients=6")
    more = ("scenario.participants=3", "engine=stacked", "pictures=false", "hydra.sweep.dir=many")
    assert cli.main(["run", "-m", *made, *more, "rounds=2,3,4", "hydra/launcher=together"]) == 0
    said = capsys.readouterr().out
    assert said.count(" of 3: ") == 3
    assert "INFO" not in said
    for number, count in enumerate((2, 3, 4)):  # the sweep sets its own log up each time that a point has ended
        assert (tmp_path / "many" / str(number) / "fedexp.log").read_text().count(f"/{count}  accuracy") == count
    assert cli.main(["verify", "many/2", "--all"]) == 0
    assert "stack with other runs then, none now" in capsys.readouterr().out


class TestInterrupted:
    """Ctrl-C and a scheduler's SIGTERM end all points, each with its state saved."""

    WORDS = ("checkpoint_s=1000", "rounds=8", "pictures=false", "hydra/launcher=together", "hydra.sweep.dir=many")

    @pytest.fixture(autouse=True)
    def _here(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.chdir(tmp_path)
        self.place = tmp_path
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores Ctrl-C
        yield
        signal.signal(signal.SIGINT, before)

    def swept(self, *words: str) -> int:
        made = ("dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60", "scenario.clients=6")
        return cli.main(["run", "-m", *made, "scenario.participants=3", *self.WORDS, *words])

    def finished(self, engine: str, seeds: int = 3) -> None:
        assert cli.main(["resume", "many"]) == 0
        configs = [tiny(f"engine={engine}", "rounds=8", f"seed={seed}") for seed in range(seeds)]
        for number, config in enumerate(configs):
            config["engine"]["workers"] = "auto"
            execution.run(config | {"pictures": False}, Path(f"alone/{number}"))
            close(Path(f"many/{number}"), Path(f"alone/{number}"))

    def test_while_all_train(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
        meetings = []

        def train(self: Meeting, posted: Any) -> Any:
            meetings.append(len(posted))
            if len(meetings) == 3:
                os.kill(os.getpid(), signal.SIGTERM)
            return original(self, posted)

        original = Meeting.train
        monkeypatch.setattr(Meeting, "train", train)
        assert self.swept("engine=stacked", "seed=0,1,2") == 143
        assert "continue with: fedexp resume many" in capsys.readouterr().err
        for number in range(3):
            assert len(metrics(Path(f"many/{number}"))) == 1
            assert Path(f"many/{number}/state.pt").exists()
            assert "interrupted; continue with" in Path(f"many/{number}/fedexp.log").read_text()
        self.finished("stacked")

    def test_in_forks(self, monkeypatch: pytest.MonkeyPatch):
        parent, judged = os.getpid(), []

        def judge(*given: Any) -> Any:
            judged.append(given)
            if len(judged) == 5:
                os.kill(parent, signal.SIGTERM)
                time.sleep(0.2)
            return original(*given)

        original = rounds.judge
        monkeypatch.setattr(rounds, "judge", judge)
        assert self.swept("engine=stacked", "hydra.launcher.jobs=2", "seed=0,1") == 143
        assert Path("many/0/state.pt").exists()
        assert not Path("many/0/summary.json").exists()
        monkeypatch.undo()
        monkeypatch.chdir(self.place)
        self.finished("stacked", seeds=2)

    def test_while_one_runs(self, monkeypatch: pytest.MonkeyPatch):
        judged = []

        def judge(*given: Any) -> Any:
            judged.append(given)
            if len(judged) == 10:
                os.kill(os.getpid(), signal.SIGINT)
            return original(*given)

        original = rounds.judge
        monkeypatch.setattr(rounds, "judge", judge)
        assert self.swept("engine=loop", "seed=0,1,2") == 130
        assert Path("many/0/summary.json").exists()
        assert 1 <= len(metrics(Path("many/1"))) <= 3
        assert not Path("many/2").exists()
        self.finished("loop")


def test_killed_in_step_and_resumed(tmp_path: Path):
    made = ("dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60", "scenario.clients=6", "seed=0,1,2")
    told = ("scenario.participants=3", "rounds=40", "pictures=false", "checkpoint_s=0", "engine=stacked")
    process = Command(tmp_path, "run", "-m", *made, *told, "hydra/launcher=together", "hydra.sweep.dir=many")
    states, deadline = [tmp_path / "many" / name / "state.pt" for name in "012"], time.monotonic() + 120
    while not process.over() and not all(state.exists() for state in states):
        assert time.monotonic() < deadline, process.said.read_text()
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not any((tmp_path / "many" / name / "summary.json").exists() for name in "012")
    again = Command(tmp_path, "resume", "many")
    assert again.wait(200) == 0, again.said.read_text()
    alone(tmp_path / "alone", [tiny("rounds=40", "engine=stacked", f"seed={seed}") for seed in range(3)])
    for name in "012":
        close(tmp_path / "many" / name, tmp_path / "alone" / name)


def test_forks_cannot_use_a_gpu(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    Together().refuse()
    with pytest.raises(
        ConfigError, match="jobs must be 1 with hydra/launcher=together, got 2: forks cannot use the GPU"
    ):
        Together(jobs=2).refuse()
    monkeypatch.delattr(os, "fork")
    with pytest.raises(ConfigError, match="processes cannot fork here; use hydra/launcher=joblib"):
        Together(jobs=2).refuse()
