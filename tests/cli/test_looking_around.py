"""What is printed for those who look around: help, lists, the composed config."""

import os
from pathlib import Path

import pytest
from command_line import python

from fedexp import __version__, cli
from fedexp.config import catalog
from fedexp.config.location import conf_dir

HEAVY = ("torch", "hydra", "omegaconf", "numpy", "pandas", "matplotlib")


@pytest.mark.parametrize(
    "words", [["--help"], ["list"], ["list", "selector"], ["list", "selector", "afl"], ["run", "--help"], ["--version"]]
)
def test_looking_around_imports_nothing_heavy(words):
    code = f"import sys; from fedexp.cli import main; main({words}); print(*[m for m in {HEAVY} if m in sys.modules])"
    before = os.times()
    done = python("-c", code)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == ""
    after = os.times()  # of the processor: the clock on the wall is that of all who share the machine
    assert after.children_user + after.children_system - before.children_user - before.children_system < 1


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


def test_list_says_what_every_group_decides_and_marks_its_default(capsys):
    assert cli.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (place,) = (number for number, line in enumerate(lines) if line.startswith("  selector "))
    assert lines[place].split(maxsplit=1)[1] == "which clients take part in a round"
    assert lines[place + 1].split()[0] == "random*"


def test_every_group_says_what_it_decides():
    told = catalog.purposes(conf_dir())
    assert sorted(told) == catalog.groups(conf_dir())
    assert [group for group, purpose in told.items() if not purpose] == []


@pytest.mark.parametrize("words", [["selector", "random"], ["selector=random"]])
def test_list_of_an_option_shows_its_keys(words, capsys):
    assert cli.main(["list", *words]) == 0
    first, *keys = capsys.readouterr().out.splitlines()
    assert first == "selector=random: A new uniform draw of clients each round"
    assert keys[0] == "  selector.count=${scenario.participants}"
    assert keys[1].split(maxsplit=1) == ["selector.fraction=null", "or a share of the clients (then count: null)"]


def test_list_of_a_bundle_shows_what_it_sets(capsys):
    assert cli.main(["list", "experiment", "dp_sgd"]) == 0
    assert "\n  algorithm=dp_sgd\n  rounds=100\n  scenario.clients=10\n" in capsys.readouterr().out


def test_comments_belong_to_their_keys(tmp_path):
    path = tmp_path / "part.yaml"
    lines = ("# a part", "_target_: a.B", "first: 1  # one", "outer:", "  inner: 'a # b'   # two", "list: [1] # three")
    path.write_text("\n".join((*lines, "none:")))
    assert catalog.comments(path) == {"first": "one", "outer.inner": "two", "list": "three"}


def test_list_of_a_group_describes_each_option(capsys):
    assert cli.main(["list", "selector"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.partition("\n\n")[0].splitlines())
    assert lines["all"] == "Every client in every round"
    assert "random*" in lines


def test_every_option_has_a_description(capsys):
    for group in (folder.name for folder in conf_dir().iterdir() if folder.is_dir()):
        cli.main(["list", group])
        for line in capsys.readouterr().out.partition("\n\n")[0].splitlines():
            assert len(line.split(maxsplit=1)) == 2, f"conf/{group}: {line.strip()} has no comment in its first line"


def test_run_help_shows_groups_keys_and_flags(capsys):
    assert cli.main(["run", "--help", "seed=3"]) == 0
    text = capsys.readouterr().out
    for part in ("selector ", "random*", "rounds=", "scenario.clients=10", "--cfg job", "-m, --multirun"):
        assert part in text


def test_cfg_shows_the_config_and_makes_no_folder(runs, capsys):
    assert cli.main(["run", "--cfg", "job", "--package", "selector", "selector.count=3"]) == 0
    assert capsys.readouterr().out == (
        "# @package selector\n_target_: fedexp.parts.selector.random.Random\ncount: 3\nfraction: null\n"
    )
    assert cli.main(["run", "--cfg", "hydra", "--resolve", "-p", "hydra.job.name"]) == 0
    assert capsys.readouterr().out == "fedexp\n"
    assert cli.main(["run", "--cfg", "job", "-p", "selector.fraction"]) == 0
    assert capsys.readouterr().out == "null\n"
    assert cli.main(["run", "--info", "defaults-tree"]) == 0
    assert "selector: random" in capsys.readouterr().out
    assert list(runs.calls) == []
    assert list(Path.cwd().iterdir()) == []
