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

import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from kept import kept_bytes
from processes import Command

import fedexp
from fedexp import ConfigError, Finished, RunError, run
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
        (("seed=0,1",), {}, "seed=0,1 gives several values; sweeps are for the command line"),
        (("-m",), {}, "run makes one run, got -m; sweeps are for the command line"),
        (("--cfg",), {}, "got the flag --cfg"),
        ((3,), {}, "got 3; name values: seed=1"),
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


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError("of a part")])
def test_what_nobody_foresaw_comes_through_as_it_is(monkeypatch: pytest.MonkeyPatch, error: BaseException):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(execution, "run", fail)
    with pytest.raises(type(error)) as told:
        run(*TINY, quiet=True)
    assert told.value is error


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
