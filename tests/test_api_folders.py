"""Runs and sweeps that lie in folders, as a script or notebook goes on with them; what it is told in its own words."""

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import torch
from kept import kept_bytes

from fedexp import ConfigError, Finished, RunError, compare, load, load_sweep, resume, rounds, run, sweep
from fedexp.api.python_messages import in_python_words
from fedexp.config import trust
from fedexp.sweep import executor

MADE = ("dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60", "scenario.clients=6", "rounds=2")
TINY = (*MADE, "engine=loop", "engine.workers=1", "pictures=false")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def leave(folder: str) -> None:
    """Leaves a run of two rounds after the first."""
    for _ in rounds(*TINY, folder=folder, quiet=True):
        break


def test_a_run_that_was_left_is_resumed_as_by_the_command(capsys: pytest.CaptureFixture[str]):
    leave("cut")
    done = resume("cut", quiet=True)
    assert capsys.readouterr() == ("", "")
    assert isinstance(done, Finished)
    assert done.is_finished
    assert kept_bytes(Path("cut")) == kept_bytes(run(*TINY, quiet=True).folder)
    again = resume("cut")
    assert "nothing is left to run" in capsys.readouterr().out
    assert isinstance(again, Finished)
    assert again.summary == done.summary


def test_a_sweep_is_resumed_and_is_its_table(monkeypatch: pytest.MonkeyPatch):
    table = sweep(*TINY, seed=[0, 1], folder="whole", quiet=True)
    plain = executor.run_points

    def interrupted(*arguments: object) -> Iterator[object]:
        for end in plain(*arguments):  # type: ignore[arg-type]
            yield end
            raise KeyboardInterrupt

    monkeypatch.setattr(executor, "run_points", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep(*TINY, seed=[0, 1], folder="cut", quiet=True)
    monkeypatch.setattr(executor, "run_points", plain)
    resumed = resume("cut", quiet=True)
    assert isinstance(resumed, pd.DataFrame)
    columns = ["seed", "final_accuracy", "rounds"]
    assert resumed[columns].to_dict() == table[columns].to_dict()
    assert kept_bytes(Path("cut/1")) == kept_bytes(Path("whole/1"))


def test_points_that_fail_again_are_an_exception():
    words = (*TINY, "server_optimizer=momentum", "server_optimizer.lr=1,1e39")
    with pytest.raises(RunError, match="1 of 2 points failed"):
        sweep(*words, folder="many", quiet=True)
    with pytest.raises(RunError, match="1 of 2 points failed"):
        resume("many", quiet=True)


def test_what_cannot_be_resumed_is_one_line():
    with pytest.raises(ConfigError, match="there is no folder nowhere; resume needs that of a run or a sweep"):
        resume("nowhere")
    Path("empty").mkdir()
    with pytest.raises(ConfigError, match="empty is no run folder"):
        resume("empty")
    Path("empty/search.yaml").touch()
    with pytest.raises(ConfigError, match="goes on by the command: fedexp resume empty"):
        resume("empty")
    run(*TINY, folder="mine", quiet=True)
    with pytest.raises(ConfigError, match="start a new one to change rounds=3"):
        resume("mine", "rounds=3")


def test_a_run_that_has_not_ended_has_its_rounds_so_far():
    leave("cut")
    begun = load("cut")
    assert (begun.is_finished, begun.metrics["round"].tolist(), len(begun.clients)) == (False, [1], 6)
    said = "^cut has no summary before its end, got 1 rounds so far; metrics has their lines, fedexp.resume goes on$"
    with pytest.raises(ConfigError, match=said):
        _ = begun.summary
    with Path("cut/metrics.csv").open("a") as file:
        file.write("2,6,")  # killed in the middle of a line
    assert load("cut").metrics["round"].tolist() == [1]
    assert sum(entry.numel() for entry in begun.model().parameters()) > 0


def test_tables_follow_a_run_until_it_has_ended():
    leave("cut")
    begun = load("cut")
    assert (begun.metrics["round"].tolist(), len(begun.clients)) == ([1], 6)
    resume("cut", quiet=True)
    assert (begun.is_finished, begun.metrics["round"].tolist(), len(begun.clients)) == (True, [1, 2], 12)
    begun.metrics["twice"] = 2 * begun.metrics["test_loss"]
    assert "twice" in begun.metrics


def test_a_run_stays_where_it_is_when_the_working_folder_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    leave("cut")
    begun = load("cut")
    assert repr(begun) == "Unfinished('cut')"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert (begun.metrics["round"].tolist(), len(begun.clients)) == ([1], 6)
    assert repr(begun) == f"Unfinished('{tmp_path / 'cut'}')"


def test_what_is_no_run_is_one_line():
    with pytest.raises(ConfigError, match="there is no folder nowhere; load needs that of a run"):
        load("nowhere")
    Path("empty").mkdir()
    with pytest.raises(ConfigError, match=r"empty must be the folder of a run, but has no metrics\.csv"):
        load("empty")
    sweep(*TINY, seed=[0, 1], folder="many", quiet=True)
    with pytest.raises(ConfigError, match=r"many must be the folder of one run, .*; fedexp\.load_sweep gives its"):
        load("many")
    Path("many/0/clients.csv").unlink()
    with pytest.raises(ConfigError, match=r"0 has no clients\.csv; the run did not write it"):
        _ = load("many/0").clients


def test_it_is_shown_in_a_line():
    leave("cut")
    assert repr(load("cut")) == "Unfinished('cut')"
    done = resume("cut", quiet=True)
    assert repr(done) == f"Finished('cut', 2 rounds, final_accuracy {done.summary['final_accuracy']:.4g})"


@pytest.mark.parametrize(
    ("words", "keys", "said"),
    [
        (("seed=1",), {"seed": 2}, "seed must have one value, got seed=1 as a word and seed=2 as a keyword argument"),
        (("model=mlp",), {"model": "lenet"}, "model must have one value, got model=mlp as a word and model=lenet"),
        (("+seed=1",), {"seed": 2}, "seed must have one value, got +seed=1 as a word"),
        (("local.lr=0.1",), {"local.lr": 0.2}, "local.lr must have one value"),
        (("hydra.run.dir=a",), {"folder": "b"}, "hydra.run.dir must have one value"),
    ],
)
def test_a_word_and_an_argument_that_contradict_each_other_are_refused(words: tuple, keys: dict, said: str):
    with pytest.raises(ConfigError) as told:
        run(*words, **keys)
    assert str(told.value).startswith(said)
    assert str(told.value).endswith("leave one out")
    assert not list(Path.cwd().iterdir())


def test_what_says_the_same_twice_is_no_contradiction():
    done = run(*TINY, "local.lr=1e-1", **{"local.lr": 0.1, "rounds": 2}, folder="mine", quiet=True)
    assert done.summary["rounds"] == 2
    with pytest.raises(ConfigError, match="seed must have one value, got seed=0,1 as a word and seed=2,3 as a keyword"):
        sweep(*TINY, "seed=0,1", seed=[2, 3])
    with pytest.raises(ConfigError, match=r"hydra\.sweep\.dir must have one value"):
        sweep(*TINY, "hydra.sweep.dir=a", seed=[2, 3], folder="b")


def test_a_word_that_is_given_twice_is_said_unless_it_is_quiet(capsys: pytest.CaptureFixture[str]):
    run(*TINY, "rounds=1", folder="loud")
    assert capsys.readouterr().err == "fedexp: rounds is given 2 times: rounds=1, the last one, counts\n"
    run(*TINY, "rounds=1", folder="quiet", quiet=True)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("--round must be a round", "round must be a round"),
        ("choose by --client, 0 to 9", "choose by client, 0 to 9"),
        ("--config-dir must be a folder, got x", "config_dir must be a folder, got x"),
        ("to use conf/x.yaml, add --config-dir conf", "to use conf/x.yaml, add config_dir='conf'"),
        ("interrupted; continue with: fedexp resume 'a b/0'", "interrupted; continue with: fedexp.resume('a b/0')"),
        ("use fedexp resume first or another folder", "use fedexp.resume('first') or another folder"),
        ("use fedexp resume 'p/b=c,d'\"'\"'e f' or another", """use fedexp.resume("p/b=c,d'e f") or another"""),
        ("stays: continue with fedexp resume", "stays: continue with fedexp.resume"),
        ("goes on by the command: fedexp resume empty", "goes on by the command: fedexp resume empty"),
        (
            "begin again: fedexp run seed=1 'hydra.run.dir=a b'",
            "begin again: fedexp.run('seed=1', 'hydra.run.dir=a b')",
        ),
        ("if they are yours, add --config-dir 'my conf'", "if they are yours, add config_dir='my conf'"),
        ("name others with --measures", "name others with measures"),
        ("at the clients, too: --measures a,b", "at the clients, too: measures=['a', 'b']"),
        ("e.g. --against outputs/latest seed=1", "e.g. against=['outputs/latest', 'seed=1']"),
        (
            "needs runs after --against; e.g. fedexp compare 'a b' --against c seed=1",
            "needs runs in against; e.g. fedexp.compare('a b', against=['c', 'seed=1'])",
        ),
        ("accept it with --unequal megabytes", "accept it with unequal=['megabytes']"),
        ("add --trust-modules mine.net", "add trust_modules=['mine.net']"),
        ("gives several values; add -m to run each of them", "gives several values; call fedexp.sweep to run each of"),
        ("pip install --upgrade x", "pip install --upgrade x"),
    ],
)
def test_flags_are_told_as_arguments(message: str, said: str):
    assert in_python_words(message).startswith(said)


def test_messages_name_arguments_of_functions():
    done = run(*TINY, folder="mine", quiet=True)
    with pytest.raises(ConfigError, match=r"^round must be a round whose state was saved, got 7"):
        done.model(round=7)
    with pytest.raises(ConfigError, match=r"^client must be a client of the run, 0 to 5, got 9"):
        done.model(client=9)
    with pytest.raises(ConfigError, match=r"^config_dir must be a folder, got nowhere"):
        run(config_dir="nowhere")


def test_a_folder_that_holds_a_run_is_gone_on_with_by_a_function():
    folder = "p/a b=c,d'e"
    run(*TINY, folder=folder, quiet=True)
    said = (
        f"{folder} already holds a run; use fedexp.resume({folder!r}), fedexp.run with resume=True, or another folder"
    )
    with pytest.raises(ConfigError, match=re.escape(said)):
        run(*TINY, folder=folder, quiet=True)
    with pytest.raises(ConfigError, match=re.escape(said)):
        sweep(*TINY, seed=[0, 1], folder=folder, quiet=True)


def test_modules_are_trusted_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.syspath_prepend(tmp_path)
    Path("own_nets.py").write_text(
        "from math import prod\nfrom torch import nn\ndef make(shape, classes):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), classes))\n"
    )
    run(*TINY, "model=torch", "model.factory=own_nets:make", folder="mine", quiet=True)
    monkeypatch.setattr(trust, "_load_trusted", dict)  # as on another machine
    with pytest.raises(ConfigError, match=r"add trust_modules=\['own_nets'\]$"):
        load("mine").model()
    assert load("mine", trust_modules=["own_nets"]).model() is not None
    with pytest.raises(ConfigError, match=r"add trust_modules=\['own_nets'\]$"):
        resume("mine")
    assert isinstance(resume("mine", trust_modules=["own_nets"]), Finished)


def test_an_interrupt_while_workers_start_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch):
    fork = os.fork

    def interrupted() -> int:
        signal.raise_signal(signal.SIGINT)
        return fork()

    words = (*MADE, "engine=loop", "engine.workers=2", "pictures=false")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fork", interrupted)
        with pytest.raises(KeyboardInterrupt, match="interrupted before the first state was saved"):
            run(*words, folder="cut", quiet=True)
    assert not torch.distributed.is_initialized()
    assert run(*words, folder="whole", quiet=True).is_finished


def test_a_run_is_taken_where_a_folder_is():
    a, b = (run(*TINY, f"local.lr={lr}", folder=f"at_{lr}", quiet=True) for lr in (0.1, 0.2))
    table = compare(a, against=b, measures=["loss_auc"])
    assert len(table) == 1
    assert load(a).folder == a.folder


def test_a_sweep_that_has_not_ended_has_the_columns_that_it_will_have():
    sweep(*TINY, algorithm=["fedavg", "fedprox"], seed=[0, 1], folder="many", quiet=True)
    for number in (1, 2, 3):
        shutil.rmtree(Path("many") / str(number))
    (line,) = load_sweep("many").to_dict("records")
    assert (line["algorithm"], line["seed"]) == ("fedavg", 0)


def test_a_key_of_the_config_is_named_before_an_argument():
    with pytest.raises(ConfigError, match="unknown key or group round; did you mean rounds"):
        run(round=5)
    with pytest.raises(ConfigError, match="cannot read 'rounds'; write \"rounds=VALUE\""):
        run("rounds")
    with pytest.raises(ConfigError, match="unknown argument fodler; did you mean folder"):
        run(fodler="a")


def test_a_misspelt_key_of_compare_is_named():
    run(*TINY, folder="a", quiet=True)
    with pytest.raises(ConfigError, match="no run has a key algoritm; did you mean algorithm"):
        compare("a", "algoritm=scaffold", against="a")


def test_a_folder_without_a_run_is_told():
    with pytest.raises(ConfigError, match=r"must be the folder of a run, but has no metrics\.csv"):
        load(".")
