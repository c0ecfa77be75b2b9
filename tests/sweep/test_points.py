"""How many points a sweep has is known before they are written down; each is composed once."""

import shutil
import time
from importlib import import_module
from pathlib import Path

import pytest
from command_line import Recorder
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser

from fedexp import cli
from fedexp.core.errors import ConfigError
from fedexp.run import run as execution
from fedexp.sweep.points import MOST_POINTS, refuse_too_many


@pytest.mark.parametrize(
    ("words", "crossed", "total"),
    [
        (["seed=range(0,1e9)"], True, "1e+09"),
        (["seed=range(0,1e9)"], False, "1e+09"),
        (["seed=range(0,7,0)"], True, "inf"),
        (["seed=range(0,1000)", "local.lr=range(0,1,0.001)"], True, "1e+06"),
    ],
)
def test_a_sweep_without_end_is_refused_at_once(words: list[str], crossed: bool, total: str):
    begin = time.perf_counter()
    with pytest.raises(ConfigError, match=f"at most {MOST_POINTS:,} points, but .* makes it {total.replace('+', '.')}"):
        refuse_too_many(OverridesParser.create().parse_overrides(words), crossed)
    assert time.perf_counter() - begin < 5


@pytest.mark.parametrize(
    "words", [["seed=1,2,3"], ["seed=range(0,1000)", "rounds=1,2"], ["rounds=3"], ["seed=range(5,0)"]]
)
def test_others_are_taken(words: list[str]):
    refuse_too_many(OverridesParser.create().parse_overrides(words), crossed=True)


def test_deviations_add_up_where_one_key_changes_at_a_time():
    words = ["seed=range(0,1000)", "local.lr=range(0,1,0.001)"]
    refuse_too_many(OverridesParser.create().parse_overrides(words), crossed=False)


@pytest.mark.parametrize("command", [("run", "-m"), ("plan", "-m"), ("run", "-m", "hydra/sweeper=one_at_a_time")])
@pytest.mark.parametrize("word", ["seed=range(1,1)", "seed=range(5,0)", "local.lr=range(1,1)"])
def test_a_word_without_values_is_refused_before_a_folder_is_made(
    command: tuple[str, ...], word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert cli.main([*command, "rounds=2,3", word]) == 2
    key = word.partition("=")[0]
    assert capsys.readouterr().err == (f"fedexp: {key} must have values, got {word}, which has none; write {key}=0,1\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "later", "earlier"),
    [
        (["seed=0,0"], "point 1 (seed=0)", "point 0"),
        (["seed=1,2", "local.lr=0.1,0.10"], "point 1 (seed=1 local.lr=0.1)", "point 0"),
        (["rounds=2", "local.lr=1,1.0"], "point 1 (local.lr=1.0)", "point 0 (local.lr=1)"),
        (["seed=range(0,300)", "rounds=2,2"], "point 1 (seed=0 rounds=2)", "point 0"),
        (["hydra/sweeper=one_at_a_time", "rounds=2", "local.lr=0.2,0.1"], "point 2 (local.lr=0.1)", "point 0"),
    ],
)
def test_copies_of_a_point_are_refused(
    words: list[str], later: str, earlier: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "-m", *words]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"fedexp: {later}: every point must be another run, but {earlier} has the same config; leave one out"
    )
    assert list(tmp_path.iterdir()) == []


def noted(folder: str) -> dict[Path, bytes]:
    """What a new sweep of two points notes; the folder is gone afterwards."""
    assert cli.main(["run", "-m", "seed=0,1", f'hydra.sweep.dir="{folder}"']) == 0
    found = {
        path: path.read_bytes() for path in (*Path(folder).glob("*/config.json"), *Path(folder).glob("*/.hydra/*.yaml"))
    }
    shutil.rmtree(folder)
    return found


def test_what_was_composed_to_be_checked_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    compose, composed = ConfigLoaderImpl.load_sweep_config, []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(execution, "complete", Recorder())
    monkeypatch.setattr(
        ConfigLoaderImpl, "load_sweep_config", lambda *words: composed.append(words[2]) or compose(*words)
    )
    checked = noted("it's many")
    assert composed == [["seed=0"]], "the other one is copied from it"
    monkeypatch.setattr(import_module("fedexp.sweep.points"), "CHECKED_AT_MOST", 0)  # composed when they are run
    assert noted("it's many") == checked
    assert len(checked) == 8


@pytest.mark.parametrize(
    ("words", "key", "values"),
    [
        (["aggregator=trimmed_mean,krum", "aggregator.byzantine=1"], "aggregator.byzantine", [1, 1]),
        (["local=prox,moon", "local.mu=0.5,2"], "local.mu", [0.5, 2, 0.5, 2]),
        (["algorithm=fedprox,fedntd", "local.batch_size=7"], "local.batch_size", [7, 7]),
    ],
)
def test_a_key_that_every_option_of_a_sweep_has_is_set(
    words: list[str], key: str, values: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    runs = Recorder()
    monkeypatch.setattr(execution, "complete", runs)
    assert cli.main(["run", "-m", *words, "hydra.sweep.dir=many"]) == 0
    group, name = key.split(".")
    assert [config[group][name] for config, _ in runs.calls] == values


@pytest.mark.parametrize("words", [["scenario.clients=6,8"], ["hydra/sweeper=one_at_a_time", "scenario.clients=6,8"]])
def test_a_word_that_refers_to_a_swept_key_follows_it(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINE", "my data, here")
    runs = Recorder()
    monkeypatch.setattr(execution, "complete", runs)
    followers = ("scenario.participants=${scenario.clients}", "data_dir=${oc.env:MINE}")
    assert cli.main(["run", "-m", *words, *followers, "hydra.sweep.dir=many"]) == 0
    told = [(config["scenario"]["clients"], config["scenario"]["participants"]) for config, _ in runs.calls]
    assert told[-2:] == [(6, 6), (8, 8)]
    assert {config["data_dir"] for config, _ in runs.calls} == {"my data, here"}
    assert cli.main(["resume", "many"]) == 0
    assert len(runs.calls) == len(told)


def test_an_option_without_the_key_is_named(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["run", "-m", "aggregator=krum,fedavg", "aggregator.byzantine=1"]) == 2
    assert capsys.readouterr().err.startswith("fedexp: point 1 (aggregator=fedavg): unknown key aggregator.byzantine;")
    assert cli.main(["run", "-m", "seed=0,1", "aggregator.byzantine=1"]) == 2
    assert capsys.readouterr().err.startswith("fedexp: unknown key aggregator.byzantine;")
