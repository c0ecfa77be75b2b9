"""What is foretold without training is what the run then tells; and nothing is left behind."""

import csv
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fedexp.cli import main
from fedexp.plan import forecast, probe
from fedexp.plan.forecast import count_evaluations
from fedexp.plan.probe import ProbeResult
from fedexp.plan.time_budget import PartialRoundError
from fedexp.process.cpu_cores import usable_cores
from fedexp.scoring.evaluation import Evaluation

MADE = (
    "dataset=synthetic",
    "dataset.train_size=240",
    "dataset.test_size=50",
    "scenario.clients=8",
    "scenario.participants=3",
    "federation=dirichlet",
    "local.batch_size=4",
    "rounds=9",
    "engine=loop",
    "engine.workers=1",
    "pictures=false",
)
PRIVATE = ("privacy.clip=1", "privacy.noise_multiplier=2", "privacy.delta=1e-2")
OVERLAPPING = ("pacing=buffered", "pacing.clients=5", "pacing.buffer=2")
FLEET = ("fleet=simulated", "fleet.dropout=0.3")


@pytest.fixture(autouse=True)
def _short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rounds tried and no more, in an empty folder; temporary files in one of the test's own."""
    monkeypatch.setattr("fedexp.plan.probe.PATIENCE_S", 0.0)
    temporary, here = tmp_path / "temporary", tmp_path / "here"
    temporary.mkdir()
    here.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.chdir(here)


@pytest.fixture
def planned(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., dict[str, Any]]:
    def plan(*words: str) -> dict[str, Any]:
        capsys.readouterr()
        assert main(["plan", "--json", *MADE, *words]) == 0
        assert list(Path.cwd().iterdir()) == []
        assert list((tmp_path / "temporary").glob("fedexp*")) == []
        return json.loads(capsys.readouterr().out)

    return plan


def test_a_run_without_a_look_at_test_data(planned: Callable[..., dict[str, Any]]):
    assert planned("evaluation.test=false")["rounds"] == 9


def test_a_run_that_would_fail_is_told_of_in_one_line(capsys: pytest.CaptureFixture[str]):
    words = ("aggregator=krum", "aggregator.on_violation=error", "scenario.byzantine=1")
    assert main(["plan", *MADE, *words]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("fedexp: round 1: Krum needs 2f + 2 < n, but f = 1 of n = 3")


def run(*words: str) -> tuple[list[dict[str, str]], dict[str, Any]]:
    """The lines of the real run and its summary."""
    assert main(["run", *MADE, *words, "hydra.run.dir=run"]) == 0
    with Path("run/metrics.csv").open() as table:
        lines = list(csv.DictReader(table))
    return lines, json.loads(Path("run/summary.json").read_text())


@pytest.mark.parametrize(
    "words",
    [
        (),
        FLEET,
        ("selector=fedcs", "selector.round_s=40", *FLEET),
        ("selector=hybridfl", "selector.round_s=40", *FLEET),
        ("aggregator=secure_mean", "selector.count=7"),
        ("local=scaffold",),
        ("privacy=dp_sgd", *PRIVATE),
        ("privacy=client_local", "scenario.malicious=4", *PRIVATE, *FLEET),
        ("privacy=client_central", "aggregator.weighting=uniform", *PRIVATE),
        ("privacy=dp_sgd", *PRIVATE, "stop=privacy_budget", "stop.epsilon=0.7"),
        ("stop=simulated_time", "stop.minutes=0.1", *FLEET),
        (*OVERLAPPING, "fleet.link=own", *FLEET),
        ("pacing=over_selection", "pacing.uploads=2", *FLEET),
    ],
    ids=" ".join,
)
def test_what_the_seed_decides_is_exact(planned: Callable[..., dict[str, Any]], words: tuple[str, ...]):
    told = planned(*words)
    lines, summary = run(*words)
    assert told["sent"]["known"]
    assert told["limit"] == ""
    assert told["rounds"] == len(lines)
    assert (len(lines) < 9) == any(word.startswith("stop=") for word in words)
    assert told["reason"] == summary["stopped"]
    assert told["sent"]["mb_down"] == sum(float(line["mb_down"]) for line in lines)
    assert told["sent"]["mb_up"] == sum(float(line["mb_up"]) for line in lines)
    assert told["sent"]["sim_s"] == (float(lines[-1]["sim_s"]) if lines[-1]["sim_s"] else None)
    if any(word.startswith("privacy=") for word in words):
        for name, value in told["epsilon"].items():
            assert value == summary["privacy"][f"epsilon_{name}"]
    else:
        assert told["epsilon"] is None


def test_models_that_clients_judge_are_not_foreseen(planned: Callable[..., dict[str, Any]]):
    plan = planned("algorithm=fedfomo", *FLEET)
    assert not plan["sent"]["known"]
    assert plan["sent"]["grows"]
    lines, _ = run("algorithm=fedfomo", *FLEET)
    assert plan["sent"]["mb_down"] < sum(float(line["mb_down"]) for line in lines)


def test_what_is_kept_of_every_client_makes_rounds_longer(
    planned: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
):
    assert planned("algorithm=ditto", "rounds=40")["seconds"]["slows_down"]
    assert not planned("algorithm=ditto", "scenario.participants=8")["seconds"][
        "slows_down"
    ]  # all are there after the first
    assert not planned("rounds=40")["seconds"]["slows_down"]
    assert main(["plan", *MADE, "algorithm=ditto", "rounds=40"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^run time +at least .* a round, more with every new client, end ", said, re.MULTILINE)
    assert main(["plan", *MADE, "algorithm=fedfomo", "rounds=40"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^sent down, up +at least .*, and more is sent with every new client\)$", said, re.MULTILINE)


def test_models_that_clients_train_on_are_counted(planned: Callable[..., dict[str, Any]]):
    """Two uploads a step of five that train at a time; where a selector learns, each may hold another model."""
    words = (*OVERLAPPING, *FLEET)
    told, bound, plain = planned(*words), planned(*words, "selector=oort"), planned(*FLEET)
    lines, _ = run(*words)
    most = max(int(line["pacing.versions"]) for line in lines)
    assert 1 < most < 5
    model_mb = plain["rows"]["mb"] / 3
    assert told["versions"] == {"models": most, "mb": pytest.approx(most * model_mb), "known": True}
    assert bound["versions"] == {"models": 5, "mb": pytest.approx(5 * model_mb), "known": False}
    assert plain["versions"] is None
    assert told["rows"]["messages"] == 2


@pytest.mark.parametrize(
    ("settings", "looks"),
    [
        ({"every": 2}, [2, 4, 5]),
        ({"every_s": 10.0}, [2, 4, 5]),  # the last round always
        ({"every_s": 3.0}, [1, 2, 4, 5]),  # not every period ends in a round of its own
        ({"every_s": 23.0}, [5]),
        ({"every_s": 100.0}, [5]),
    ],
)
def test_evaluations_are_counted_by_rounds_or_by_the_clock(settings: dict[str, Any], looks: list[int]):
    exp: Any = SimpleNamespace(evaluation=Evaluation(**settings), has_clock=True)
    clock: Any = SimpleNamespace(dry_rounds=[SimpleNamespace(sim_s=float(now)) for now in (5, 10, 11, 22, 23)])
    assert count_evaluations(exp, ProbeResult(), clock, 5) == len(looks)


def test_every_round_that_is_tried_is_looked_at(
    planned: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
):
    found: list[ProbeResult] = []
    whole = forecast.seconds
    monkeypatch.setattr(forecast, "seconds", lambda result, *more: found.append(result) or whole(result, *more))
    planned(*FLEET, "evaluation.every_s=1e6")
    assert all(tried.row.get("test_loss") is not None for tried in found[0].tried_rounds)


@pytest.mark.parametrize(("every_s", "looks"), [(10.0, 6), (0.5, 10)])
def test_evaluations_by_a_clock_that_nobody_can_count_are_estimated(every_s: float, looks: int):
    """Two rounds that were tried took 6 and then 5 seconds: ten take 51."""
    exp: Any = SimpleNamespace(evaluation=Evaluation(every_s=every_s), has_clock=True)
    tried: Any = SimpleNamespace(tried_rounds=[SimpleNamespace(row={"sim_s": now}) for now in (6.0, 11.0)])
    assert count_evaluations(exp, tried, None, 10) == looks


@pytest.mark.parametrize(("algorithm", "models"), [("fedavg", 1), ("ditto", 2)])
def test_models_trained_beside_the_messages_are_counted(
    planned: Callable[..., dict[str, Any]], algorithm: str, models: int
):
    rows, plain = planned(f"algorithm={algorithm}")["rows"], planned()["rows"]
    assert rows["companions"] == (models - 1) * rows["messages"]
    assert rows["mb"] / rows["messages"] == pytest.approx(models * plain["mb"] / plain["messages"])


def test_the_engine_is_the_one_that_runs(planned: Callable[..., dict[str, Any]]):
    told, (_, summary) = planned("engine=auto"), run("engine=auto")
    assert told["engine"] == summary["engine"] | {"reason": told["engine"]["reason"]}
    assert told["device"] == summary["device"]


def test_what_a_selector_learns_is_an_estimate_and_epsilon_a_bound(planned: Callable[..., dict[str, Any]]):
    told = planned("selector=oort")
    assert not told["sent"]["known"]
    assert told["sent"]["mb_down"] == pytest.approx(9 * 3 * planned()["sent"]["mb_down"] / (9 * 3))
    private = (*PRIVATE, "privacy=dp_sgd", "evaluation.validation=true")
    exact = planned(*private)["epsilon"]
    bound = planned(*private, "selector=greedyfed", "selector.count=3")["epsilon"]
    assert bound["pld"] > exact["pld"]
    assert bound == planned(*private, "selector=all")["epsilon"]  # as if everybody took part in every round


def test_a_long_run_is_counted_until_it_stops(
    planned: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    words = ("rounds=100000000", "stop=simulated_time", *FLEET)
    told = planned(*words, "stop.minutes=0.5")
    assert told["rounds"] < 100
    assert 30 <= told["sent"]["sim_s"] < 30 + told["sent"]["sim_s"] / told["rounds"] * 3
    assert (told["limit"], told["reason"]) == ("", "the budget of 0.5 simulated minutes is spent")
    monkeypatch.setattr("fedexp.plan.dry_run.PATIENCE_S", 0.05)
    told = planned(*words, "stop.minutes=1e9")
    assert told["limit"] == "at least"
    assert told["reason"] is None
    assert 1 <= told["rounds"] < 100_000_000
    assert main(["plan", *MADE, *words, "stop.minutes=1e9"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^rounds +at least [\d,]+, ", out, re.MULTILINE)
    assert re.search(r"^simulated time +at least [\d,.]+ s \(the rounds that were counted\)$", out, re.MULTILINE)


def test_a_budget_ends_a_run_that_nobody_can_count(planned: Callable[..., dict[str, Any]]):
    """Who takes part is learnt: the clock is guessed from the tried rounds, epsilon is bounded."""
    learnt = ("selector=oort", "rounds=100000000")
    told = planned(*learnt, "stop=simulated_time", "stop.minutes=100", *FLEET)
    assert told["limit"] == "about"
    assert 6000 <= told["sent"]["sim_s"] < 6000 + 2 * told["sent"]["sim_s"] / told["rounds"]
    budget = ("privacy=dp_sgd", *PRIVATE, "stop=privacy_budget", "stop.epsilon=2", "rounds=200")
    private = planned("selector=greedyfed", "selector.count=3", "evaluation.validation=true", *budget)
    assert private["limit"] == "at least"
    assert 1 <= private["rounds"] < 200
    assert private["epsilon"]["pld"] <= 2


def test_a_run_that_ends_in_the_trial_is_known(planned: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fedexp.plan.probe.PATIENCE_S", 1e9)
    words = ("selector=greedyfed", "selector.count=3", "evaluation.validation=true", "privacy=dp_sgd", *PRIVATE)
    words += ("stop=privacy_budget", "stop.epsilon=6", "rounds=40")
    told = planned(*words)
    lines, summary = run(*words)
    assert 2 < told["rounds"] == len(lines) < 40
    assert told["sent"]["known"]
    assert told["sent"]["mb_up"] == pytest.approx(sum(float(line["mb_up"]) for line in lines))
    assert told["epsilon"] == {name: summary["privacy"][f"epsilon_{name}"] for name in ("pld", "rdp")}
    assert told["epsilon"]["pld"] <= 6


def test_a_first_round_like_no_other_counts_once(planned: Callable[..., dict[str, Any]]):
    """AFL has all clients judge the first model, and later nobody."""
    told = planned("selector=afl", "selector.count=3", "rounds=100")
    each = planned("selector=oort")["sent"]["mb_down"] / 9 / 3
    assert told["sent"]["mb_down"] == pytest.approx((8 + 99 * 3) * each)


def test_trying_that_ends_with_short_rounds_is_no_mistake(
    planned: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
):
    """What was tried first was cut short; more rounds are wanted, and for these nothing is left."""

    def no_more(*_: object) -> None:
        raise PartialRoundError

    real = probe._try
    monkeypatch.setattr(probe, "PATIENCE_S", 1e9)
    monkeypatch.setattr(probe, "_try", lambda exp, *rest: real(exp, *rest) if exp.rounds <= 2 else no_more())
    assert planned()["tried"] == 2


def test_a_rule_that_looks_at_accuracy_may_end_it_earlier(planned: Callable[..., dict[str, Any]]):
    told = planned("stop=target", "stop.value=1.0", "local.lr=1e-6")
    assert (told["rounds"], told["limit"], told["tried"]) == (9, "at most", 2)
    over = planned("stop=target", "stop.value=0.0")
    assert (over["rounds"], over["limit"], over["tried"]) == (1, "", 1)
    assert over["reason"].endswith("reached 0")


def test_workers_and_one_round(planned: Callable[..., dict[str, Any]]):
    told = planned("engine.workers=2", "rounds=1")
    assert (told["rounds"], told["tried"], told["engine"]["workers"]) == (1, 1, 2)
    assert told["memory_mb"] > 50


@pytest.mark.parametrize(("words", "messages"), [(["selector=all"], 6), (["selector.count=1"], 1)])
def test_the_selector_says_how_many_take_part(planned: Callable[..., dict[str, Any]], words: list[str], messages: int):
    """So much memory, and so many workers: scenario.participants=4 says nothing to either."""
    told = planned(*words, "scenario.participants=4", "scenario.clients=6", "engine.workers=auto", "rounds=1")
    assert told["rows"]["messages"] == messages
    assert told["engine"]["workers"] == min(messages, usable_cores())


def test_no_more_messages_than_clients(planned: Callable[..., dict[str, Any]]):
    words = ("pacing=buffered", "pacing.clients=3", "pacing.buffer=5", "scenario.participants=3", "scenario.clients=3")
    assert planned(*words, *FLEET)["rows"]["messages"] == 3


def test_short_rounds_are_tried_longer(planned: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fedexp.plan.probe.PATIENCE_S", 1e9)
    monkeypatch.setattr("fedexp.plan.probe.MOST", 5)
    assert planned("evaluation.every=4")["tried"] == 7


def test_the_folder_is_weighed(planned: Callable[..., dict[str, Any]]):
    words = ("keep_states=2", "rounds=8")
    told = planned(*words)["disk_mb"]
    run(*words)
    left = (path for path in Path("run").rglob("*") if path.is_file() and ".hydra" not in path.parts)
    assert told == pytest.approx(sum(path.stat().st_size for path in left) / 1e6, rel=0.1)


def test_the_table(capsys: pytest.CaptureFixture[str]):
    assert main(["plan", *MADE, "privacy=dp_sgd", *PRIVATE, *FLEET]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:16].strip() for line in lines] == [
        *(
            "engine",
            "device",
            "rounds",
            "run time",
            "peak memory",
            "rows in memory",
            "sent down, up",
            "simulated time",
            "epsilon",
            "disk",
        )
    ]
    assert lines[0] == "engine          loop: as asked"
    assert lines[2] == "rounds          9, 2 of them tried"
    assert lines[5].startswith("rows in memory  3 (")
    assert lines[8].endswith(" (RDP) at delta 0.01 (exact)")


def test_the_table_tells_what_clients_train_on_while_the_server_steps(capsys: pytest.CaptureFixture[str]):
    assert main(["plan", *MADE, *OVERLAPPING, *FLEET, "selector=oort"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[5].startswith("rows in memory  2 (")
    assert re.fullmatch(
        r"versions        at most 5 earlier models \([\d.]+ kB\) that clients train on at once", lines[6]
    )


def test_a_sweep_is_planned_by_its_first_point(capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "-m", *MADE, "seed=3,4", "local.lr=0.1,0.2,0.3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("sweep ")
    assert {"sent down, up, a point", "disk, all points"} <= {line.partition("  ")[0] for line in lines}
    assert lines[0].endswith("6 points, each as costly as the first: seed=3 local.lr=0.1")
    assert re.fullmatch(r"all points      .* \(one after another, the program's own .* once\)", lines[5])
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("selector.cout=3",), "unknown key selector.cout; did you mean selector.count?"),
        (("stop=simulated_time",), "stop=simulated_time needs a simulated clock, but the server has none; "),
        (("--cfg", "job"), "unknown flag --cfg; it belongs to run"),
        (("-m", "local.lr=0.1,-1"), "point 1 (local.lr=-1): local.lr must be "),
    ],
)
def test_what_a_run_refuses_is_refused(words: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]):
    assert main(["plan", *words]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"fedexp: {complaint}")  # a slow start tells more
    assert list(Path.cwd().iterdir()) == []


def test_help(capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: fedexp plan [group=option] [key=value] [-m] [--json]\n")
    assert main(["--help"]) == 0
    assert "fedexp plan " in capsys.readouterr().out
