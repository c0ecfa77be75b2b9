"""What is tried in part: how much of it is done, what the rest is said to cost, and what is told of it."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from fedexp.cli import main
from fedexp.plan.progress import report_progress
from fedexp.plan.time_budget import BudgetedPool, JobCutShortError, PartialRoundError, TimeBudget
from fedexp.training.loop.trainer import LoopTrainer, Task
from fedexp.training.workers.pool import EVALUATION, TRAINING, JobKind, Work, WorkerPool

MADE = (
    "dataset=synthetic",
    "dataset.train_size=400",
    "dataset.test_size=100",
    "scenario.clients=10",
    "scenario.participants=10",
    "federation=iid",
    "local.batch_size=4",
    "local.epochs=2",
    "rounds=5",
    "engine=loop",
    "engine.workers=1",
    "evaluation.every=1",
    "pictures=false",
)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("fedexp.plan.probe.PATIENCE_S", 0.0)
    monkeypatch.chdir(tmp_path)


def slowed(seconds: float, kind: JobKind, jobs: int = 20) -> Work:
    """Jobs that sleep, and tell their number."""

    def job(number: int) -> torch.Tensor:
        time.sleep(seconds)
        return torch.full((1, 2), float(number))

    work = Work(torch.zeros((jobs, 2)), kind=kind)
    work.jobs = [(np.array([number]), lambda number=number: job(number)) for number in range(jobs)]
    return work


def test_what_fits_is_done_and_costs_nothing_more():
    ration, work = TimeBudget(60.0), slowed(0.0, EVALUATION)
    BudgetedPool(WorkerPool(), ration).execute(work)
    assert work.out[:, 0].tolist() == list(range(20))
    assert ration.partial_stages == []
    assert ration.skipped == []


def test_what_does_not_fit_is_priced_by_what_was_done():
    ration, work = TimeBudget(0.3), slowed(0.02, EVALUATION, 50)
    begun = time.perf_counter()
    BudgetedPool(WorkerPool(), ration).execute(work)
    spent = time.perf_counter() - begun
    tally = ration.tally(EVALUATION)
    assert 1 <= tally.done < tally.requested == 50
    assert spent + ration.skipped_seconds(0.0, float("inf")) == pytest.approx(spent / tally.done * 50, rel=0.3)
    assert (work.out[int(tally.done) :, 0] < tally.done).all()  # drawn from what was worked out
    assert ration.partial_stages == [f"evaluation: {tally.done:.3g} of 50 examples, the rest by their number"]


def test_of_every_kind_something_is_tried_and_of_a_known_one_nothing_when_time_is_up():
    ration = TimeBudget(0.0)
    crew = BudgetedPool(WorkerPool(), ration)
    for kind in (TRAINING, EVALUATION, EVALUATION):
        crew.execute(slowed(0.001, kind))
    assert (ration.tally(TRAINING).done, ration.tally(EVALUATION).done) == (1, 1)
    assert ration.tally(EVALUATION).requested == 40
    crew.execute(slowed(0.001, TRAINING))  # the next group of the same round
    assert (ration.tally(TRAINING).done, ration.tally(TRAINING).requested) == (1, 40)
    following = slowed(0.001, TRAINING)
    following.round = 1
    with pytest.raises(PartialRoundError):
        crew.execute(following)


def test_effort_counts():
    ration, work = TimeBudget(0.0), slowed(0.02, TRAINING, 3)
    work.effort = np.array([1.0, 8.0, 1.0])
    BudgetedPool(WorkerPool(), ration).execute(work)
    assert ration.skipped_seconds(0.0, float("inf")) == pytest.approx(9 * ration.tally(TRAINING).seconds)


@pytest.mark.parametrize(
    ("seconds", "done", "remaining_s"),
    [
        ([4.0], 1, 9 * 4.0),  # one step is enough, and is timed
        ([0.2, 3.0], 2, 8 * 3.0),  # the first one was the warm-up
        ([0.1, 0.1, 0.2, 0.2, 0.2, 0.2], 6, 4 * 0.2),  # short steps: at least six, without the first two
    ],
)
def test_how_many_steps_are_tried_follows_from_how_long_they_take(
    monkeypatch: pytest.MonkeyPatch, seconds: list[float], done: int, remaining_s: float
):
    pool, now = BudgetedPool(WorkerPool(), TimeBudget(0.0)), [100.0]
    monkeypatch.setattr("fedexp.plan.time_budget.time.perf_counter", lambda: now[0])
    pool.budget.enter_stage("training")
    for step, took in enumerate(seconds):
        pool.watch(step, 10)
        now[0] += took
    with pytest.raises(JobCutShortError) as cut:
        pool.watch(len(seconds), 10)
    assert (cut.value.share, cut.value.remaining_s) == (pytest.approx(done / 10), pytest.approx(remaining_s))


@pytest.fixture
def slow_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step takes 10 ms."""
    run = LoopTrainer.run

    def slow(loop: LoopTrainer, task: Task, rows: np.ndarray) -> torch.Tensor:
        def watch(done: int, steps: int) -> None:
            time.sleep(0.01)
            task.watch(done, steps)

        return run(loop, Task(**{**vars(task), "watch": watch}), rows)

    monkeypatch.setattr(LoopTrainer, "run", slow)


@pytest.fixture
def budget(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    def set_to(seconds: float) -> None:
        monkeypatch.setattr("fedexp.plan.plan.LEAST_S", seconds)
        monkeypatch.setattr("fedexp.plan.plan.MOST_S", seconds)

    return set_to


@pytest.mark.usefixtures("slow_training")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_round_in_part_foretells_a_whole_one(
    budget: Callable[[float], None], capsys: pytest.CaptureFixture[str], workers: int
):
    told = {}
    for seconds in (60.0, 0.6):
        budget(seconds)
        assert main(["plan", "--json", *MADE, f"engine.workers={workers}"]) == 0
        told[seconds] = json.loads(capsys.readouterr().out)
    whole, part = told[60.0], told[0.6]
    assert (whole["parts"], whole["tried"]) == ([], 2)
    assert part["tried"] == 1
    assert re.match(r"training: [\d.]+ of 10 clients, the rest by their steps", part["parts"][0])
    assert part["seconds"]["first"] == pytest.approx(whole["seconds"]["first"], rel=0.5)
    assert part["seconds"]["rounds"] == pytest.approx(whole["seconds"]["rounds"], rel=0.5)
    assert part["sent"] == whole["sent"]


@pytest.mark.usefixtures("slow_training")
def test_the_table_and_the_lines_on_the_way(budget: Callable[[float], None], capsys: pytest.CaptureFixture[str]):
    budget(0.5)
    assert main(["plan", *MADE]) == 0
    told = capsys.readouterr()
    rows = dict(re.split(r" {2,}", line, maxsplit=1) for line in told.out.splitlines())
    assert rows["rounds"] == "5, 1 of them tried in part"
    assert rows["tried in part"].startswith("training: ")
    assert told.err.splitlines()[:2] == ["reading the data", "round 1 of the trial"]
    assert "closing the trial" in told.err


def test_coalitions_are_tried_in_part(
    budget: Callable[[float], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("fedexp.scoring.mixtures.BLOCK", 10)  # four jobs
    budget(0.0)
    words = ("selector=greedyfed", "selector.shapley.method=exact", "evaluation.validation=true")
    assert main(["plan", "--json", *MADE, *words]) == 0
    parts = " ".join(json.loads(capsys.readouterr().out)["parts"])
    assert re.search(r"models on validation data: 256 of 1,024 models, the rest by their number", parts)


def test_what_looks_at_no_clock_is_given_up_with_a_word(
    budget: Callable[[float], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("fedexp.parts.aggregator.fedavg.FedAvg.shares", lambda *_: time.sleep(30))
    monkeypatch.setattr("fedexp.plan.probe.GRACE_S", 0.5)
    budget(0.5)
    assert main(["plan", *MADE]) == 0
    rows = dict(re.split(r" {2,}", line, maxsplit=1) for line in capsys.readouterr().out.splitlines())
    for name in ("run time", "peak memory", "disk"):
        assert rows[name] == "- (round 1 was not over after 1 s)"
    assert rows["sent down, up"].endswith("(exact)")
    assert main(["plan", "--json", *MADE]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["seconds"], told["memory_mb"], told["disk_mb"], told["tried"]) == (None, None, None, 0)
    assert told["gave_up"] == "round 1 was not over after 1 s"


def test_a_long_silence_is_broken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr("fedexp.plan.progress.SILENCE_S", 0.2)
    with report_progress() as voice:
        voice.begin_step("thinking", print_now=False)
        voice.stage = lambda: "hard"
        time.sleep(0.5)
    assert capsys.readouterr().err.splitlines()[0] == "thinking: hard, 0 s"
