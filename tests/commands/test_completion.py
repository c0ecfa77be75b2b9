"""Tab completion: the hidden query that the shells ask, and the bash script itself."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import complaint

from fedexp import cli
from fedexp.commands.arguments.parsing import COMMANDS, parser_of
from fedexp.commands.completion import SCRIPTS, complete
from fedexp.config.launchers import HYDRA_OPTIONS

HEAVY = ("torch", "hydra", "omegaconf", "numpy")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fedexp r", ["replay", "report", "resume", "run"]),
        ("fedexp run modl", []),
        ("fedexp run mode", ["model.", "model="]),
        ("fedexp run model=s", ["model=simple_cnn"]),
        ("fedexp run -m model=mlp,s", ["model=mlp,simple_cnn"]),
        ("fedexp run selector.", ["selector.count=", "selector.fraction="]),
        ("fedexp run fleet=simulated fleet.b", ["fleet.bandwidth_mbit="]),
        ("fedexp run fleet.b", []),
        ("fedexp run scenario.c", ["scenario.clients="]),
        ("fedexp run seed=", []),
        ("fedexp run --c", ["--cfg", "--config-dir", "--config-name"]),
        ("fedexp run --cfg ", ["all", "hydra", "job"]),
        ("fedexp data ", ["check", "download"]),
        ("fedexp data check mnist m", []),
        ("fedexp data check cif", ["cifar10"]),
        ("fedexp data check d", ["data_dir=", "diabetes", "digits"]),
        ("fedexp list sel", ["selector"]),
        ("fedexp list selector af", ["afl"]),
        ("fedexp new pre", ["pre_aggregation", "pretraining"]),
        ("fedexp new e", []),
        ("fedexp new selector ", []),
        ("fedexp new selector mine --", ["--help", "--into"]),
        ("fedexp plan --j", ["--json"]),
        ("fedexp plan --cfg", []),
        ("fedexp run --cfg=h", ["--cfg=hydra"]),
        ("fedexp run --info def", ["defaults", "defaults-tree"]),
        ("fedexp run hydra/l", ["hydra/launcher="]),
        ("fedexp run hydra/launcher=sub", ["hydra/launcher=submitit_local", "hydra/launcher=submitit_slurm"]),
        ("fedexp plan -m hydra/sweeper=o", ["hydra/sweeper=one_at_a_time"]),
        ("fedexp resume x ", ["hydra/launcher=", "tracker="]),
        ("fedexp resume x tracker=", ["tracker=mlflow", "tracker=none", "tracker=tensorboard", "tracker=wandb"]),
        ("fedexp resume --jobs 2 x tracker=mlflow tracker.u", ["tracker.uri="]),
        ("fedexp resume x hydra/launcher=r", ["hydra/launcher=ray"]),
        ("fedexp compare x --unequal steps,", ["steps,epochs", "steps,megabytes", "steps,steps"]),
        ("fedexp run --no-such model=s", ["model=simple_cnn"]),
        ("fedexp run --cfg --resolve model=s", ["model=simple_cnn"]),
        ("fedexp search --trials x selector=af", ["selector=afl"]),
        ("fedexp completion ", ["bash", "fish", "zsh"]),
        ("fedexp nonsense ", []),
    ],
)
def test_what_may_follow(line, words):
    assert complete(line) == words


def test_groups_and_keys_are_offered_together():
    offered = complete("fedexp run ")
    assert {"selector=", "selector.", "seed=", "experiment="} <= set(offered)


def test_run_folders():
    for folder in ("outputs/2026-01-01/10-00-00", "outputs/multirun/2026-01-02/11-00-00/0"):
        Path(folder).mkdir(parents=True)
        Path(folder, "config.json").touch()
    Path("outputs/latest").symlink_to("2026-01-01/10-00-00")
    Path("elsewhere/run").mkdir(parents=True)
    assert complete("fedexp resume ") == [
        "outputs/2026-01-01/10-00-00",
        "outputs/latest",
        "outputs/multirun/2026-01-02/11-00-00/0",
    ]
    assert complete("fedexp resume els") == ["elsewhere/"]
    assert complete("fedexp resume elsewhere/") == ["elsewhere/run/"]


@pytest.mark.parametrize("flag", ["--config-dir", "--data-dir", "--into", "--out"])
def test_folders_after_a_flag(flag):
    Path("elsewhere/deep").mkdir(parents=True)
    word = next(word for word in COMMANDS if flag in parser_of(word).values)
    assert complete(f"fedexp {word} {flag} els") == ["elsewhere/"]
    assert complete(f"fedexp {word} {flag}=elsewhere/") == [f"{flag}=elsewhere/deep/"]


def test_own_options_complete_behind_their_folder():
    Path("mine/selector").mkdir(parents=True)
    Path("mine/selector/waiting.yaml").write_text("# Mine\n_target_: mine.Waiting\npatience: 3\n")
    assert complete("fedexp run selector=wait") == []
    for words in ("run --config-dir mine", "plan -cd mine", "search --config-dir=mine"):
        assert complete(f"fedexp {words} selector=wait") == ["selector=waiting"]
    assert complete("fedexp run --config-dir mine selector=waiting selector.p") == ["selector.patience="]
    assert complete("fedexp list --config-dir mine selector w") == ["waiting"]


@pytest.mark.parametrize("group", HYDRA_OPTIONS)
def test_the_launchers_and_sweepers_are_those_that_a_run_knows(group, capsys):
    assert cli.main(["run", "-m", "seed=0,1", f"{group}=zzzz"]) == 2
    known = complaint(capsys).partition("known: ")[2].split(", ")
    assert set(HYDRA_OPTIONS[group]) <= set(known)
    assert set(known) <= set(HYDRA_OPTIONS[group]) or group == "hydra/sweeper", (
        "plugins may bring sweepers of their own"
    )


def test_the_query_is_light():
    code = (
        "import sys; from fedexp.cli import main; main(['__complete', 'fedexp run model=s']); "
        f"print(*[m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "model=simple_cnn\n\n"


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_the_scripts_are_printed(shell, capsys):
    assert cli.main(["completion", shell]) == 0
    assert capsys.readouterr().out == SCRIPTS[shell]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(("breaks", "word"), [("=:", "simple_cnn"), ("", "model=simple_cnn")])
def test_bash_completes_what_stands_behind_the_equals_sign(breaks, word):
    script = f"""
fedexp() {{ {sys.executable} -m fedexp.cli "$@"; }}
{SCRIPTS["bash"]}
COMP_WORDBREAKS='{breaks}'
COMP_LINE='fedexp run model=s' COMP_POINT=18
_fedexp_complete
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == f"{word}\n"


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_inserts_the_names_of_folders_quoted():
    for name in ("a$(touch PWN)b", "a b", "a*", "plain-1.2"):
        Path(name).mkdir()
    script = f"""
fedexp() {{ {sys.executable} -m fedexp.cli "$@"; }}
{SCRIPTS["bash"]}
COMP_LINE='fedexp report ' COMP_POINT=14
_fedexp_complete
for word in "${{COMPREPLY[@]}}"; do eval "printf '%s\\n' $word"; done
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["a b/", "a$(touch PWN)b/", "a*/", "plain-1.2/"]
    assert not Path("PWN").exists()
