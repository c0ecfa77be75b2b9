"""Runs from a script: the bytes of the command, errors as exceptions, and a process that is as it was."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import Any

import pandas as pd
import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from kept import kept_bytes
from processes import Command

import fedexp
from fedexp import ConfigError, Finished, RunError, compare, load, load_sweep, rounds, run, sweep
from fedexp.commands.launch import resume
from fedexp.config.location import conf_dir
from fedexp.run import run as execution

MADE = ("dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60", "scenario.clients=6", "rounds=2")
TINY = (*MADE, "engine=loop", "engine.workers=1", "pictures=false")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120, check=False)


def test_twice_in_a_process_and_twice_from_the_shell_are_the_same_bytes(tmp_path: Path):
    torch.set_num_threads(2)
    first, second = run(*TINY, seed=3, quiet=True), run(*TINY, seed=4, quiet=True)
    for done, seed in ((first, 3), (second, 4)):
        shell = tmp_path / f"shell{seed}"
        Command(tmp_path, "run", *TINY, f"seed={seed}", f"hydra.run.dir={shell.name}").finish()
        assert kept_bytes(done.folder) == kept_bytes(shell)
        assert (done.folder / "clients.csv").read_bytes() == (shell / "clients.csv").read_bytes()
        for name in ("config.json", ".hydra/config.yaml", ".hydra/overrides.yaml"):
            own, asked = ((place / name).read_text() for place in (done.folder, shell))
            assert own == asked
    assert kept_bytes(first.folder) != kept_bytes(second.folder)


def test_what_it_returns_is_what_lies_in_the_folder(tmp_path: Path):
    done = run(*TINY, quiet=True)
    assert isinstance(done, Finished)
    assert done.folder.is_relative_to(tmp_path / "outputs")
    assert (tmp_path / "outputs" / "latest").resolve() == done.folder
    assert done.summary == json.loads((done.folder / "summary.json").read_text())
    assert list(done.metrics["round"]) == [1, 2]
    assert list(done.clients["round"].value_counts()) == [6, 6]
    resume(done.folder)
    assert "round 2/2" in (done.folder / "fedexp.log").read_text()


@pytest.mark.parametrize("quiet", [False, True])
def test_it_prints_what_the_command_prints_unless_it_is_quiet(capsys: pytest.CaptureFixture[str], quiet: bool):
    run(*TINY, folder="mine", quiet=quiet)
    told = capsys.readouterr()
    assert ("final accuracy" in told.out, "folder          mine" in told.out) == (not quiet, not quiet)
    assert told.err == ""
    assert "final accuracy" in Path("mine/fedexp.log").read_text()


@pytest.mark.parametrize(
    ("words", "keys", "complaint"),
    [
        (("selector.cout=3",), {}, "unknown key selector.cout; did you mean selector.count?"),
        ((), {"seed": -1}, "seed must be an integer >= 0, got -1"),
        ((), {"selector": "fedcs"}, "use fleet=simulated"),
        (("seed=0,1",), {}, "seed=0,1 gives several values; call fedexp.sweep for several"),
        (("-m",), {}, "run makes one run, got -m; call fedexp.sweep for several"),
        (("points=methods.csv",), {}, "run makes one run, got points=...; call fedexp.sweep for several"),
        (("--cfg",), {}, "got the flag --cfg"),
        ((3,), {}, "got 3; name values: seed=1"),
        (({"local.lr": 0.1},), {}, "got {'local.lr': 0.1}; write **{'local.lr': 0.1}"),
        ((["seed=1"],), {}, "got ['seed=1']; write *['seed=1']"),
        ((), {"local_lr": 0.1}, 'unknown key or group local_lr; write "local.lr=0.1"'),
        ((), {"mu": 0.1}, 'unknown key or group mu; write "algorithm=fedprox", "local.mu=0.1"'),
        ((), {"seeds": [3, 4]}, 'unknown key or group seeds; call fedexp.sweep("seed=3,4")'),
        (("rounds=2 seed=3",), {}, 'cannot read \'rounds=2 seed=3\'; write "rounds=2", "seed=3"'),
        ((), {"seed": [0, 1]}, "got [0, 1]; for a run of each call fedexp.sweep(seed=[...])"),
        ((), {"seed": range(2)}, "got [0, 1]; for a run of each call fedexp.sweep(seed=[...])"),
        ((), {"local.lr": [0.1, 0.2]}, 'for a run of each call fedexp.sweep(**{"local.lr": [...]})'),
        (
            (),
            {"evaluation.metrics": ["accuracy", sum]},
            'got the object sum; write it into a file, my_metrics.py, and give "my_metrics:sum"',
        ),
        ((), {"selector": dict}, "got the object dict; write it into a file, as fedexp new does"),
        ((), {"onround": print}, "unknown argument onround; did you mean on_round?"),
        (
            (),
            {"dataset": object()},
            "dataset must be given in words, numbers or lists, got an object of object",
        ),
        (
            ("evaluation.metrics=[accuracy,__main__:f2]",),
            {},
            "got __main__:f2 of the script or notebook that runs; write it into my_parts.py, and name my_parts:f2",
        ),
        (
            ("evaluation.metrics=[f2]",),
            {},
            "got f2; write my_metrics:f2 for a function in my_metrics.py; known: accuracy",
        ),
    ],
)
def test_what_cannot_work_is_an_exception_and_leaves_nothing(words: tuple, keys: dict, complaint: str):
    with pytest.raises(ConfigError) as told:
        run(*words, **keys)
    assert complaint in str(told.value)
    assert "\n" not in str(told.value)
    assert list(Path.cwd().iterdir()) == []


def test_a_run_that_has_to_end_raises_what_ended_it():
    with pytest.raises(RunError, match="not finite after round 1"):
        run(*TINY, "server_optimizer=momentum", "server_optimizer.lr=1e39", quiet=True)
    with pytest.raises(ConfigError, match="already holds a run"):
        [run(*TINY, folder="mine", quiet=True) for _ in range(2)]


def test_what_nobody_foresaw_comes_through_as_it_is(monkeypatch: pytest.MonkeyPatch):
    error = ZeroDivisionError("of a part")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(execution, "run", fail)
    with pytest.raises(ZeroDivisionError) as told:
        run(*TINY, quiet=True)
    assert told.value is error


def test_an_interrupt_says_how_to_go_on():
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^interrupted; continue with: fedexp\.resume\('mine'\)$") as told:
        run(*TINY, "checkpoint_s=0", folder="mine", quiet=True, on_round=stop)
    assert told.value._render_traceback_() == [f"InterruptionError: {told.value}"]  # type: ignore[attr-defined]


def test_a_notebook_shows_a_mistake_in_one_line(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ConfigError) as told:
        run("seed=-1")
    (line,) = told.value._render_traceback_()
    assert line == f"ConfigError: {told.value}"
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    assert len(told.value._render_traceback_()) > 3


def test_a_cell_that_is_run_twice_goes_on_or_reads_what_is_there():
    whole = run(*TINY, folder="whole", quiet=True).metrics["test_accuracy"].tolist()
    assert run(*TINY, folder="mine", quiet=True, resume=True).metrics["test_accuracy"].tolist() == whole
    seen: list[int] = []
    run(*TINY, folder="mine", quiet=True, resume=True, on_round=lambda row: seen.append(row["round"]))
    assert not seen, "it has ended"
    with pytest.raises(ConfigError, match=r"^mine holds another run, with seed=0; choose another folder$"):
        run(*TINY, "seed=3", folder="mine", quiet=True, resume=True)


def test_a_loop_goes_on_with_the_rounds_that_are_missing():
    words = (*TINY, "rounds=4", "checkpoint_s=0")
    for row in rounds(*words, folder="mine", quiet=True, resume=True):
        if row["round"] == 2:
            break
    assert [row["round"] for row in rounds(*words, folder="mine", quiet=True, resume=True)] == [3, 4]
    assert not list(rounds(*words, folder="mine", quiet=True, resume=True))
    whole = run(*words, folder="whole", quiet=True)
    assert load("mine").metrics["test_loss"].tolist() == whole.metrics["test_loss"].tolist()


def test_a_metric_whose_file_changes_is_the_new_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.syspath_prepend(tmp_path)
    file = Path("metric_to_change.py")
    for number, value in enumerate((0.25, 0.75)):
        file.write_text(f"def f2(probabilities, targets):\n    return {value}\n")
        words = (*TINY, "evaluation.metrics=[accuracy,metric_to_change:f2]")
        done = run(*words, folder=f"mine{number}", quiet=True)
        assert set(done.metrics["test_f2"]) == {value}


def test_a_comparison_is_the_command_as_a_table():
    sweep(*TINY, "local.lr=0.01,0.3", seed=range(6), folder="many", quiet=True)
    table = compare("many", "local.lr=0.3", against=["many", "local.lr=0.01"], measures=["test_accuracy"])
    (row,) = table.to_dict("records")
    finals = load_sweep("many").pivot(index="seed", columns="local.lr", values="final_accuracy")
    assert row["difference"] == pytest.approx((finals[0.3] - finals[0.01]).mean())
    assert (row["pairs"], row["quantity"]) == (6, "test_accuracy")
    with pytest.raises(ConfigError, match=r"^no run below many has local\.lr=7"):
        compare("many", "local.lr=7", against="many")


def test_the_table_of_a_sweep_says_which_points_failed():
    words = (*TINY, "server_optimizer=momentum")
    with pytest.raises(RunError, match=r"^1 of 2 points failed: many/1; the first: .*not finite after round 1"):
        sweep(*words, "server_optimizer.lr=1.0,1e39", folder="many", quiet=True)
    failed = load_sweep("many")["failed"]
    assert failed.isna().tolist() == [True, False]
    assert "not finite after round 1" in failed[1]
    with pytest.raises(ConfigError, match=r"^there is no sweep in many/0"):
        load_sweep("many/0")


def test_the_process_is_as_it_was(tmp_path: Path):
    own = logging.FileHandler(tmp_path / "own.log", mode="w")
    root = logging.getLogger()
    root.addHandler(own)
    torch.set_num_threads(2)
    before = (dict(os.environ), Path.cwd(), root.handlers[:], root.level, logging.root.manager.disable)
    with initialize_config_dir(config_dir=str(conf_dir()), version_base="1.2"):
        hydra = GlobalHydra.instance().hydra
        run(*TINY, "engine.workers=2", quiet=True)
        assert GlobalHydra.instance().hydra is hydra
        assert compose("config", overrides=["rounds=7"]).rounds == 7  # still the script's own
    after = (dict(os.environ), Path.cwd(), root.handlers[:], root.level, logging.root.manager.disable)
    assert after == before
    assert torch.get_num_threads() == 2
    assert not torch.distributed.is_initialized()
    logging.getLogger("script").warning("still heard")
    root.removeHandler(own)
    own.close()
    assert (tmp_path / "own.log").read_text() == "still heard\n"


def test_one_run_at_a_time_in_a_process(monkeypatch: pytest.MonkeyPatch):
    told: list[str] = []

    def meanwhile(*_: object) -> None:
        with ThreadPoolExecutor(1) as pool, pytest.raises(ConfigError, match="another thread runs one") as caught:
            pool.submit(run, *TINY, quiet=True).result()
        told.append(str(caught.value))
        raise RunError("seen")

    monkeypatch.setattr(execution, "run", meanwhile)
    for _ in range(2):
        with pytest.raises(RunError, match="seen"):
            run(*TINY, quiet=True)
    assert len(told) == 2


def test_inside_an_application_of_hydra(tmp_path: Path):
    (tmp_path / "study.py").write_text(
        dedent(f"""
        import hydra
        from hydra.core.hydra_config import HydraConfig
        from fedexp import run

        @hydra.main(version_base="1.3", config_path=None)
        def study(config):
            done = run(*{TINY!r}, seed=config.seed, quiet=True)
            print(HydraConfig.get().job.name, done.summary["rounds"], done.folder.parts[-3])

        study()
        """)
    )
    told = python("study.py", "+seed=5")
    assert told.stdout == "study 2 outputs\n", told.stderr


def test_run_is_the_function_whatever_was_imported_before():
    rooms = "import fedexp.run.tables, fedexp.run; from fedexp.run import folders"
    waited = ["import os, sys, hydra, pandas, torch"]  # each is a copy of a process that has imported nothing of fedexp
    for first in ("from fedexp import run", rooms, "import fedexp; fedexp.run"):
        asked = f"{first}; import fedexp; from fedexp import run; {rooms}; print(run.__module__, run is fedexp.run)"
        waited.append(f"os.fork() or (exec({asked!r}), sys.stdout.flush(), os._exit(0)); os.wait()")
    told = python("-c", "\n".join(waited))
    assert told.stdout == 3 * "fedexp.api True\n", told.stderr


def test_importing_is_light():
    told = python("-c", "import fedexp, sys; print(sorted({'torch', 'hydra', 'numpy', 'pandas'} & set(sys.modules)))")
    assert told.stdout == "[]\n"
    with pytest.raises(AttributeError, match="has no attribute 'walk'"):
        fedexp.walk  # noqa: B018


def test_own_options_of_a_folder(tmp_path: Path):
    (tmp_path / "own" / "experiment").mkdir(parents=True)
    (tmp_path / "own" / "experiment" / "mine.yaml").write_text("# @package _global_\nseed: 9\n")
    run(*TINY, config_dir="own", experiment="mine", folder=Path("a run"), quiet=True)
    assert "seed: 9" in (tmp_path / "a run" / ".hydra" / "config.yaml").read_text()
    assert not (tmp_path / "outputs").exists()


def demand_lines(lines: list[dict], folder: Path) -> None:
    """These are the lines of the folder's metrics.csv, but for their seconds."""
    table = pd.read_csv(folder / "metrics.csv").astype(object)
    assert lines == table.where(table.notna(), None).to_dict("records")
    assert list(lines[0]) == list(table)


def test_it_calls_back_with_the_line_of_every_round():
    lines: list[dict] = []
    done = run(*TINY, quiet=True, on_round=lines.append)
    demand_lines(lines, done.folder)
    assert kept_bytes(done.folder) == kept_bytes(run(*TINY, quiet=True).folder)


def test_what_a_callback_raises_comes_out_and_the_run_can_go_on():
    def leave(row: dict) -> None:
        raise LookupError(f"after {row['round']}")

    with pytest.raises(LookupError, match="after 1"):
        run(*TINY, folder="cut", quiet=True, on_round=leave)
    resume(Path("cut"))
    assert kept_bytes(Path("cut")) == kept_bytes(run(*TINY, quiet=True).folder)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_loop_over_rounds_is_the_same_run(workers: int):
    before = (dict(os.environ), logging.getLogger().handlers[:], torch.get_num_threads())
    lines = list(rounds(*TINY, f"engine.workers={workers}", folder="mine", quiet=True))
    assert (dict(os.environ), logging.getLogger().handlers[:], torch.get_num_threads()) == before
    demand_lines(lines, Path("mine"))
    assert load("mine").summary["rounds"] == 2
    done = run(*TINY, f"engine.workers={workers}", quiet=True)
    assert kept_bytes(Path("mine")) == kept_bytes(done.folder)


@pytest.mark.parametrize("workers", [1, 2])
def test_who_leaves_the_loop_interrupts_the_run(workers: int, capsys: pytest.CaptureFixture[str]):
    before = (dict(os.environ), logging.getLogger().handlers[:], torch.get_num_threads())
    for row in rounds(*TINY, f"engine.workers={workers}", folder="cut"):
        assert row["round"] == 1
        break
    assert (dict(os.environ), logging.getLogger().handlers[:], torch.get_num_threads()) == before
    assert not torch.distributed.is_initialized()
    assert capsys.readouterr().out.endswith("left before its end; continue with: fedexp resume cut\n")
    assert not load("cut").is_finished
    resume(Path("cut"))
    assert kept_bytes(Path("cut")) == kept_bytes(run(*TINY, f"engine.workers={workers}", quiet=True).folder)


def test_one_loop_at_a_time():
    first = rounds(*TINY, quiet=True)
    assert next(first)["round"] == 1
    with pytest.raises(ConfigError, match="a loop over the rounds of another run is open"):
        next(rounds(*TINY, quiet=True))
    first.close()
    assert [row["round"] for row in rounds(*TINY, quiet=True)] == [1, 2]
    with pytest.raises(ConfigError, match="unknown key selector"):
        next(rounds("selector.cout=3"))


def test_a_run_within_a_loop_whose_workers_are_there_says_to_leave_it():
    loop = rounds(*TINY, "engine.workers=2", quiet=True)
    next(loop)
    with pytest.raises(ConfigError, match="leave the loop first"):
        run(*TINY, quiet=True)
    loop.close()
    assert run(*TINY, quiet=True).is_finished


def test_a_sweep_is_the_command_and_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    table = sweep(*TINY, seed=range(2), algorithm=["fedavg", "fedprox"], folder="mine", quiet=True)
    assert capsys.readouterr() == ("", "")
    words = ("-m", *TINY, "seed=0,1", "algorithm=fedavg,fedprox", "hydra.sweep.dir=theirs")
    Command(tmp_path, "run", *words).finish()
    for point in range(4):
        assert kept_bytes(Path(f"mine/{point}")) == kept_bytes(Path(f"theirs/{point}"))
    columns = ["algorithm", "seed", "folder", "final_accuracy", "best_accuracy", "loss_auc", "accuracy_auc"]
    assert list(table) == [*columns, "rounds", "updates", "host_s", "sim_s"]
    assert table[["seed", "algorithm"]].to_numpy().tolist() == [
        *([0, "fedavg"], [0, "fedprox"], [1, "fedavg"], [1, "fedprox"])
    ]
    summaries = [load(folder).summary for folder in table["folder"]]
    assert table["final_accuracy"].tolist() == [summary["final_accuracy"] for summary in summaries]


@pytest.mark.parametrize(
    ("points", "got"), [({"local.lr": 0.1}, "{'local.lr': 0.1}"), (["a=1"], "'a=1'"), (5, "5"), ([], "\\[\\]")]
)
def test_points_that_are_no_list_of_points_are_refused_in_a_line(points: Any, got: str):
    with pytest.raises(ConfigError, match=f"points must be a file or a list of points, .* got {got}; several values"):
        sweep(*TINY, points=points)


def test_a_sweep_of_listed_points_keeps_their_rates():
    points = [{"local": "adam", "local.lr": 0.01}, {"local.lr": 0.2}]
    table = sweep(*TINY, points=points, seed=[3], quiet=True)
    assert table[["local", "local.lr", "seed"]].to_numpy().tolist() == [["adam", 0.01, 3], ["sgd", 0.2, 3]]


def test_a_sweep_refuses_and_fails_as_exceptions():
    with pytest.raises(ConfigError, match=r"seed=-1\): seed must be"):
        sweep(*TINY, seed=[0, -1], quiet=True)
    assert list(Path.cwd().iterdir()) == []
    with pytest.raises(RunError, match="1 of 2 points failed: many/1"):
        sweep(*TINY, "server_optimizer=momentum", "server_optimizer.lr=1,1e39", folder="many", quiet=True)
    assert load("many/0").summary["rounds"] == 2
