"""The command line as a user meets it: what it prints, where it writes, and how it ends."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedexp import __version__, cli, run
from fedexp.conf_dir import conf_dir
from fedexp.spec import ConfigError

HEAVY = ("torch", "hydra", "omegaconf", "numpy", "pandas", "matplotlib")


class Recorder:
    """Stands in for fedexp.run.run: remembers what it was given, or ends as told."""

    def __init__(self, error: BaseException | None = None, at_seed: int = 0) -> None:
        self.error, self.at_seed = error, at_seed
        self.calls: list[tuple[dict, Path]] = []

    def __call__(self, config: dict, folder: Path) -> None:
        self.calls.append((config, folder))
        (folder / "metrics.csv").touch()
        if self.error is not None and config["seed"] == self.at_seed:
            raise self.error


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("RANK", "WORLD_SIZE", "HYDRA_FULL_ERROR", "FEDEXP_DATA"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def runs(monkeypatch):
    recorder = Recorder()
    monkeypatch.setattr(run, "run", recorder)
    return recorder


def ending_with(monkeypatch, error, at_seed=0):
    recorder = Recorder(error, at_seed)
    monkeypatch.setattr(run, "run", recorder)
    return recorder


def python(*words, **options):
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def complaint(capsys):
    """The only line on stderr."""
    text = capsys.readouterr().err
    assert text.count("\n") == 1, text
    return text.rstrip("\n")


# What is printed


@pytest.mark.parametrize("words", [["--help"], ["list"], ["list", "selector"], ["run", "--help"], ["--version"]])
def test_looking_around_imports_nothing_heavy(words):
    code = f"import sys; from fedexp.cli import main; main({words}); print(*[m for m in {HEAVY} if m in sys.modules])"
    begun = time.perf_counter()
    done = python("-c", code)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == ""
    assert time.perf_counter() - begun < 1


def test_help_names_exactly_the_commands_there_are(capsys):
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert [line.split()[1] for line in text.splitlines() if line.startswith("  fedexp ")] == list(cli.COMMANDS)


@pytest.mark.parametrize("command", sorted(cli.COMMANDS))
def test_every_command_answers_help(command, capsys):
    assert cli.main([command, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: fedexp {command}")


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"fedexp {__version__}\n"


def test_list_marks_the_default_of_every_group(capsys):
    assert cli.main(["list"]) == 0
    lines = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert lines["selector"][0] == "random*"
    assert "cifar10" in lines["dataset"]


def test_list_of_a_group_describes_each_option(capsys):
    assert cli.main(["list", "selector"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  all      Every client in every round" in lines
    assert any(line.startswith("  random*  ") for line in lines)


def test_every_option_has_a_description(capsys):
    for group in (folder.name for folder in conf_dir().iterdir() if folder.is_dir()):
        cli.main(["list", group])
        for line in capsys.readouterr().out.splitlines():
            assert len(line.split(maxsplit=1)) == 2, f"conf/{group}: {line.strip()} has no comment in its first line"


def test_run_help_shows_groups_keys_and_flags(capsys):
    assert cli.main(["run", "--help", "seed=3"]) == 0
    text = capsys.readouterr().out
    for part in ("selector ", "random*", "rounds=", "scenario.clients=10", "--cfg job", "-m, --multirun"):
        assert part in text


def test_cfg_shows_the_config_and_makes_no_folder(runs, capsys):
    assert cli.main(["run", "--cfg", "job", "--package", "selector", "selector.count=3"]) == 0
    assert capsys.readouterr().out == (
        "# @package selector\n_target_: fedexp.selectors.random.Random\ncount: 3\nfraction: null\n"
    )
    assert cli.main(["run", "--cfg", "hydra", "--resolve", "-p", "hydra.job.name"]) == 0
    assert capsys.readouterr().out == "fedexp\n"
    assert cli.main(["run", "--cfg", "job", "-p", "selector.fraction"]) == 0
    assert capsys.readouterr().out == "null\n"
    assert cli.main(["run", "--info", "defaults-tree"]) == 0
    assert "selector: random" in capsys.readouterr().out
    assert list(runs.calls) == []
    assert list(Path.cwd().iterdir()) == []


# Asked wrongly


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "a command must be given: run, resume, report, list, data, completion; see fedexp --help"),
        (["rnu"], "unknown command rnu; did you mean run? (fedexp --help)"),
        (["seed=3"], "unknown command seed=3; write fedexp run seed=3 ... (fedexp --help)"),
        (["run", "--cfg", "jb"], "--cfg must be one of job, hydra, all, got jb; see fedexp run --help"),
        (["run", "--cfg"], "--cfg expected one argument; see fedexp run --help"),
        (["run", "--multrun"], "unknown flag --multrun; did you mean --multirun?"),
        (["run", "--resolve"], "--resolve needs --cfg; write --cfg job too"),
        (["run", "-m", "--cfg", "job"], "only one of --run, --multirun, --cfg and --info can be given"),
        (["run", "--cfg", "job", "-p", "selectr"], "unknown key or group selectr; did you mean selector?"),
        (["run", "--config-dir", "mine"], "--config-dir must be a folder, got mine"),
        (["resume"], "resume needs one run folder, got 0; e.g. fedexp resume outputs/latest"),
        (["resume", "x"], "there is no folder x; fedexp resume needs a run folder, e.g. outputs/latest"),
        (["resume", "."], ". is no run folder: it has no .hydra/config.yaml"),
        (["list", "selector", "model"], "list shows one group at a time, got 2: selector model"),
        (["list", "datset"], "unknown group datset; did you mean dataset?"),
        (["data"], "data needs check or download, and dataset names; e.g. fedexp data check mnist"),
        (["data", "chek"], "data must be followed by check or download, got chek; did you mean check?"),
        (["data", "check", "cifr10"], "unknown dataset cifr10; did you mean cifar10?"),
        (["data", "check", "mnist", "data_dir="], "data_dir needs a folder; write data_dir=DIR"),
        (["completion"], "completion needs a shell: bash, zsh, fish; got none"),
    ],
)
def test_a_wrong_word_is_one_line_and_exit_code_2(words, message, runs, capsys):
    assert cli.main(words) == 2
    assert complaint(capsys) == f"fedexp: {message}"
    assert runs.calls == []
    assert list(Path.cwd().iterdir()) == []


def test_full_error_shows_where_it_came_from(monkeypatch, capsys):
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    assert cli.main(["run", "model=mpl"]) == 2
    text = capsys.readouterr().err
    assert "MissingConfigException" in text
    assert text.endswith("fedexp: unknown option model=mpl; did you mean mlp?\n")


# One run


def test_a_run_gets_the_plain_config_and_a_folder_of_its_own(runs):
    assert cli.main(["run", "seed=7", "model=keras_cnn"]) == 0
    ((config, folder),) = runs.calls
    assert config["seed"] == 7
    assert config["selector"]["count"] == config["scenario"]["participants"]
    assert "hydra" not in config
    assert json.loads(json.dumps(config)) == config
    assert folder.parts[0] == "outputs"
    assert (folder / ".hydra" / "overrides.yaml").read_text() == "- seed=7\n- model=keras_cnn\n"
    assert (folder / "fedexp.log").exists()
    assert not (Path("outputs") / "latest").readlink().is_absolute()
    assert Path("outputs/latest").resolve() == folder.resolve()


def test_two_runs_of_the_same_second_do_not_share_a_folder(runs):
    for _ in range(3):
        assert cli.main(["run", "hydra.run.dir=outputs/${now:%Y}/x"]) == 0
    year = time.strftime("%Y")
    assert [str(folder) for _, folder in runs.calls] == [f"outputs/{year}/{name}" for name in ("x", "x-2", "x-3")]
    assert Path("outputs/latest").readlink() == Path(year, "x-3")


@pytest.mark.usefixtures("runs")
def test_a_folder_given_by_hand_may_hold_no_run(capsys):
    assert cli.main(["run", "hydra.run.dir=mine"]) == 0
    capsys.readouterr()
    assert cli.main(["run", "hydra.run.dir=mine"]) == 2
    assert complaint(capsys) == "fedexp: mine already holds a run; use fedexp resume mine or another folder"
    assert not Path("outputs").exists()


@pytest.mark.usefixtures("runs")
def test_a_folder_that_cannot_be_made(capsys):
    Path("file").touch()
    assert cli.main(["run", "hydra.run.dir=file/x"]) == 2
    assert complaint(capsys).startswith("fedexp: cannot make the folder file/x: ")


def test_the_config_may_be_refused_while_it_runs(monkeypatch, capsys):
    ending_with(monkeypatch, ConfigError("no room"))
    assert cli.main(["run"]) == 2
    assert complaint(capsys) == "fedexp: no room"


def test_a_run_that_had_to_end(monkeypatch, capsys):
    recorder = ending_with(monkeypatch, run.RunError("not finite\nthe last state is kept"))
    assert cli.main(["run"]) == 1
    assert complaint(capsys) == "fedexp: not finite the last state is kept"
    assert "ERROR not finite" in (recorder.calls[0][1] / "fedexp.log").read_text()


def test_a_defect_shows_its_traceback_and_leaves_it_in_the_log(monkeypatch, capsys):
    recorder = ending_with(monkeypatch, ZeroDivisionError("by zero"))
    assert cli.main(["run"]) == 1
    text = capsys.readouterr().err
    assert text.startswith("Traceback")
    assert text.endswith("fedexp: ZeroDivisionError: by zero\n")
    assert "Traceback" in (recorder.calls[0][1] / "fedexp.log").read_text()


def test_an_interrupted_run_says_how_to_continue(monkeypatch, capsys):
    def interrupted(_, folder):
        (folder / "state.pt").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run", interrupted)
    assert cli.main(["run", "hydra.run.dir=outputs/mine"]) == 130
    assert complaint(capsys) == "fedexp: interrupted; continue with: fedexp resume outputs/mine"


@pytest.mark.usefixtures("runs")
def test_the_root_logger_is_left_as_it_was():
    before = logging.getLogger().handlers[:], logging.getLogger().level
    assert cli.main(["run"]) == 0
    assert (logging.getLogger().handlers, logging.getLogger().level) == before


def test_the_users_own_experiments(runs):
    own = Path("own/experiment")
    own.mkdir(parents=True)
    (own / "tiny.yaml").write_text("# @package _global_\n# Mine\ndefaults:\n  - override /model: keras_cnn\nseed: 5\n")
    assert cli.main(["run", "experiment=tiny", "--config-dir", "own"]) == 0
    ((config, _),) = runs.calls
    assert (config["seed"], config["model"]["_target_"]) == (5, "fedexp.models.keras_cnn.KerasCNN")


# Sweeps


def test_a_sweep_runs_every_point_in_its_folder(runs, capsys):
    assert cli.main(["run", "seed=1,2", "-m", "model=mlp,keras_cnn"]) == 0
    assert [folder.name for _, folder in runs.calls] == ["0", "1", "2", "3"]
    assert [config["seed"] for config, _ in runs.calls] == [1, 1, 2, 2]
    sweep = runs.calls[0][1].parent
    assert sweep.parts[:2] == ("outputs", "multirun")
    assert Path("outputs/latest").resolve() == sweep.resolve()
    assert (sweep / "3" / "fedexp.log").exists()
    assert "#3 : seed=2 model=keras_cnn" in capsys.readouterr().out


def test_a_file_may_ask_for_a_sweep(runs):
    own = Path("own/experiment")
    own.mkdir(parents=True)
    sweep = "hydra:\n  mode: MULTIRUN\n  sweeper:\n    params:\n      seed: 3,4\n"
    (own / "seeds.yaml").write_text(f"# @package _global_\n# Seeds\n{sweep}")
    assert cli.main(["run", "experiment=seeds", "-cd", "own", """hydra.sweep.dir="it's here\""""]) == 0
    assert [(config["seed"], str(folder)) for config, folder in runs.calls] == [(3, "it's here/0"), (4, "it's here/1")]


@pytest.mark.usefixtures("runs")
def test_a_wrong_point_stops_the_sweep_before_it_starts(capsys):
    assert cli.main(["run", "-m", "seed=0,-1"]) == 2
    assert complaint(capsys) == "fedexp: point 1 (seed=-1): seed must be an integer >= 0, got -1"
    assert list(Path.cwd().iterdir()) == []


def test_a_failing_point_is_named_and_ends_the_sweep(monkeypatch, capsys):
    recorder = ending_with(monkeypatch, run.RunError("not finite"), at_seed=1)
    assert cli.main(["run", "-m", "seed=0,1,2"]) == 1
    assert complaint(capsys) == "fedexp: point 1 (seed=1): not finite"
    assert len(recorder.calls) == 2


@pytest.mark.usefixtures("runs")
def test_a_sweep_folder_given_by_hand_may_hold_no_sweep(capsys):
    assert cli.main(["run", "-m", "seed=0", "hydra.sweep.dir=many"]) == 0
    capsys.readouterr()
    assert cli.main(["run", "-m", "seed=0", "hydra.sweep.dir=many"]) == 2
    assert complaint(capsys) == "fedexp: many already holds a sweep; use another folder"
    assert cli.main(["resume", "many"]) == 2
    assert complaint(capsys) == "fedexp: many is a sweep; resume one of its points, e.g. many/0"


# Resume, torchrun, data


@pytest.mark.usefixtures("runs")
def test_resume_continues_in_the_folder_and_its_log(monkeypatch, capsys):
    cli.main(["run", "hydra.run.dir=mine"])
    resumed = []
    monkeypatch.setattr(run, "resume", resumed.append)
    assert cli.main(["resume", "mine"]) == 0
    assert resumed == [Path("mine")]
    monkeypatch.setattr(run, "resume", lambda _: (_ for _ in ()).throw(ConfigError("another config")))
    capsys.readouterr()
    assert cli.main(["resume", "mine"]) == 2
    assert complaint(capsys) == "fedexp: another config"
    assert "ERROR another config" in Path("mine/fedexp.log").read_text()


def test_other_ranks_follow_and_write_nothing(runs, monkeypatch):
    followed = []
    monkeypatch.setattr(run, "follow", followed.append)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert cli.main(["run", "seed=3"]) == 0
    assert [config["seed"] for config in followed] == [3]
    assert runs.calls == []
    assert list(Path.cwd().iterdir()) == []


def test_other_ranks_leave_the_log_to_the_first(monkeypatch, caplog):
    monkeypatch.setattr(run, "follow", lambda _: logging.getLogger("fedexp").critical("told by rank 0 too"))
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert cli.main(["run"]) == 0
    logging.getLogger("fedexp").warning("after the run")
    assert caplog.messages == ["after the run"]


def test_torchrun_takes_one_run_at_a_time(runs, monkeypatch, capsys):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert cli.main(["run", "-m", "seed=3,4"]) == 2
    assert complaint(capsys) == "fedexp: a sweep (-m) cannot run under torchrun; start torchrun once for each point"
    assert runs.calls == []


@pytest.mark.usefixtures("runs")
def test_other_ranks_say_who_they_are(monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert cli.main(["run", "model=mpl"]) == 2
    assert complaint(capsys) == "fedexp (rank 1): unknown option model=mpl; did you mean mlp?"


def test_data_commands_get_names_and_folder(monkeypatch):
    from fedexp.data import commands, store

    calls = []
    monkeypatch.setattr(commands, "check", lambda names, folder: calls.append((names, folder)) or 0)
    monkeypatch.setattr(commands, "download", lambda names, folder: calls.append((names, folder)) or 2)
    assert cli.main(["data", "check", "mnist", "har"]) == 0
    assert cli.main(["data", "download", "data_dir=d", "mnist"]) == 2
    assert cli.main(["data", "check", "mnist", "--data-dir", "d"]) == 0
    assert calls == [(["mnist", "har"], store.data_root()), (["mnist"], Path("d")), (["mnist"], Path("d"))]


# As a process


def test_the_installed_layout_finds_its_configs_from_anywhere(here):
    package = Path(cli.__file__).parent
    shutil.copytree(package, here / "site" / "fedexp", ignore=shutil.ignore_patterns("__pycache__", "conf"))
    shutil.copytree(conf_dir(), here / "site" / "fedexp" / "conf")
    environment = {**os.environ, "PYTHONPATH": str(here / "site")}
    asked = "from fedexp.cli import main; from fedexp.conf_dir import conf_dir; print(conf_dir()); main(['list'])"
    done = python("-c", asked, cwd=here, env=environment)
    assert done.stdout.startswith(str(here / "site" / "fedexp" / "conf"))
    assert "selector" in done.stdout


def test_as_a_module_a_typo_ends_with_code_2(here):
    done = python("-m", "fedexp.cli", "run", "selector.cout=3", cwd=here)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fedexp: unknown key selector.cout; did you mean selector.count?\n"
    assert list(here.iterdir()) == []


def test_a_reader_that_leaves_is_no_error():
    done = subprocess.run(
        f"{sys.executable} -m fedexp.cli run --help | true",
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""


def test_control_c_in_a_real_run(here):
    words = ["run", "rounds=100000", "checkpoint_s=0", "engine=loop", "hydra.run.dir=mine"]
    process = subprocess.Popen(
        [sys.executable, "-m", "fedexp.cli", *words],
        cwd=here,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_control_c,
    )
    try:
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline and not (here / "mine" / "state.pt").exists():
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert said == "fedexp: interrupted; continue with: fedexp resume mine\n"
    assert process.returncode == 130


def heed_control_c():
    """A shell's background job, and so all tests in it, ignores Ctrl-C; the child must not inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
