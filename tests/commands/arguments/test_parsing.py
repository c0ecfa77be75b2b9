"""Help, reading and completion of every flag, from the one declaration that each command makes."""

import sys
from pathlib import Path

import pytest
from command_line import complaint, python

from fedexp import cli
from fedexp.commands.arguments.parsing import COMMANDS, Parser, parser_of
from fedexp.commands.compare import UNEQUAL
from fedexp.commands.completion import complete
from fedexp.compare import equality

HEAVY = ("torch", "hydra", "omegaconf", "numpy", "pandas", "matplotlib")
VALUES = {
    "--budget": "2",
    "--cells": "iid*",
    "--config-name": "mine",
    "--fail-if": "test_accuracy < -0.01",
    "--grid": "aggregator,attack",
    "--jobs": "2",
    "--measures": "test_accuracy,roa@0.9",
    "--package": "selector",
    "--rounds": "4",
    "--round": "4",
    "--client": "2",
    "--seed": "5",
    "--seeds": "6",
    "--table": "mine.yml",
    "--columns": "rounds",
    "--trials": "6",
    "--trust-modules": "mine,others.parts",
}
FLAGS = [(word, flag) for word in COMMANDS for flag in parser_of(word).flags]
LONG = [(word, flag) for word, flag in FLAGS if flag.startswith("--")]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def value(word: str, flag: str, parser: Parser) -> str:
    """One that the flag takes: a written one, a file or folder, or the last that completion offers."""
    if flag == "--out":
        return {"report": "x.html", "compare": "x.csv"}.get(word, "x")
    Path("there").mkdir(exist_ok=True)
    name = "--" + parser.flags[flag].dest.replace("_", "-")
    return VALUES.get(name) or sorted(parser.values[flag](""))[-1]


@pytest.mark.parametrize(("word", "flag"), FLAGS)
def test_every_flag_is_told_and_read(word, flag, capsys):
    parser = parser_of(word)
    action, plain = parser.flags[flag], parser.read([])
    if flag in parser.values:
        given = value(word, flag, parser)
        spellings = [[flag, given], [f"{flag}={given}"]]
    else:
        spellings = [[flag]]
    for words in spellings:
        asked = (
            parser.read(["one", *words, "two"]) if action.nargs in (None, 0) else parser.read(["one", "two", *words])
        )
        assert getattr(asked, action.dest) != getattr(plain, action.dest)
        others = {name: found for name, found in vars(asked).items() if name != action.dest}
        assert ["one", "two"] in others.values(), "the other words stay, wherever the flag stands"
    assert cli.main([word, "--help"]) == 0
    lines = [line.replace(",", " ").split() for line in capsys.readouterr().out.splitlines()]
    assert any(flag in line and line[0].startswith("-") for line in lines if line)


@pytest.mark.parametrize(("word", "flag"), [(word, flag) for word, flag in LONG if (word, flag[:-1]) not in LONG])
def test_every_flag_completes_and_none_has_a_short_form_of_its_name(word, flag, capsys):
    assert flag in complete(f"fedexp {word} {flag[:-1]}")
    assert cli.main([word, flag[:-1]]) == 2
    assert complaint(capsys).startswith(f"fedexp: unknown flag {flag[:-1]}; ")


@pytest.mark.parametrize(("word", "flag"), [(word, flag) for word, flag in LONG if flag in parser_of(word).values])
def test_a_value_that_is_missing_or_empty_is_one_line(word, flag, capsys):
    optional = parser_of(word).flags[flag].nargs is not None
    assert cli.main([word, "x", f"{flag}=" if optional else flag]) == 2
    assert flag.lstrip("-") in complaint(capsys) or flag == "--against"


@pytest.mark.parametrize("word", COMMANDS)
def test_the_help_fits(word, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    assert cli.main([word, "-h"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: fedexp {word} ")
    own = text if word != "run" else text.partition("Groups;")[0]  # what files say of keys is theirs
    assert max(map(len, own.splitlines())) <= 120


def test_completing_and_helping_import_nothing_heavy(tmp_path):
    lines = [f"fedexp {word} {more}" for word in COMMANDS for more in ("", "--", "x ")]
    code = (
        "import sys; from fedexp.cli import main; "
        f"[main(['__complete', line]) for line in {lines}]; [main([word, '--help']) for word in {COMMANDS}]; "
        f"print(*[m for m in {HEAVY} if m in sys.modules])"
    )
    done = python("-c", code, cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "")


def test_what_may_be_unequal_is_what_compare_knows():
    assert UNEQUAL == equality.UNEQUAL


def test_the_package_is_the_command_too(tmp_path):
    assert sys.executable
    for name in ("fedexp", "fedexp.cli"):
        done = python("-m", name, "list", "selector", "afl", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("selector=afl: ")
