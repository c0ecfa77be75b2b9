"""`fedexp list` with options of the user's own."""

import json
from pathlib import Path

import pytest
from command_line import complaint

from fedexp import cli


@pytest.fixture(autouse=True)
def _mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("selector", "habit"):
        Path("mine", name).mkdir(parents=True)
    Path("mine/selector/waiting.yaml").write_text(
        "# Who waited longest\n_target_: mine.Waiting\npatience: 3  # rounds\n"
    )
    Path("mine/selector/random.yaml").write_text("# Another draw\n_target_: mine.Random\n")
    Path("mine/habit/early.yaml").write_text("# Before dawn\n")


def listed(capsys, *words):
    assert cli.main(["list", *words]) == 0
    return capsys.readouterr().out.splitlines()


def test_own_options_stand_among_ours_and_are_marked(capsys):
    lines = listed(capsys, "--config-dir", "mine", "selector")
    assert f"  {'waiting+':15}  Who waited longest" in lines
    assert f"  {'random*+':15}  Another draw" in lines, "the user's own is the one that a run would take"
    assert [line for line in lines if line.startswith("  afl ")]
    assert "+ lies in mine" in lines


def test_a_section_of_the_config_shows_its_keys(capsys):
    lines = listed(capsys, "scenario")
    assert all(line.startswith("  scenario.") for line in lines)
    assert lines[0].split(maxsplit=1) == [
        "scenario.clients=10",
        "made by the artificial federations; `subject`, `central` and `file` know their own number",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["scenario", "clients"], "fedexp: scenario has keys and no options; fedexp list scenario shows them"),
        (["scenario=clients"], "fedexp: scenario has keys and no options; fedexp list scenario shows them"),
        (["evalation"], "fedexp: unknown group evalation; did you mean evaluation?"),
        (["aggregate"], "fedexp: unknown group aggregate; did you mean aggregator or pre_aggregation?"),
    ],
)
def test_what_is_no_group(words, message, capsys):
    assert cli.main(["list", *words]) == 2
    assert complaint(capsys).startswith(message)


def test_groups_of_ones_own_are_listed_too(capsys):
    lines = listed(capsys, "-cd", "mine")
    place = lines.index(f"  {'selector':16}  which clients take part in a round")
    assert lines[place + 1].split()[0] == "random*+"
    assert "waiting+" in " ".join(lines[place + 1 : place + 3])
    assert lines[lines.index("  habit") + 1].split() == ["early+"]


@pytest.mark.parametrize("words", [["selector", "waiting"], ["selector=waiting"]])
def test_the_keys_of_an_own_option(words, capsys):
    first, key = listed(capsys, *words, "--config-dir=mine")
    assert first == "selector=waiting: Who waited longest"
    assert key.split(maxsplit=1) == ["selector.patience=3", "rounds"]


def test_without_the_folder_nothing_of_it_is_known(capsys):
    assert cli.main(["list", "selector", "waiting"]) == 2
    assert complaint(capsys).startswith("fedexp: unknown option of selector waiting; ")
    assert not [line for line in listed(capsys) if "+" in line]


@pytest.mark.parametrize("text", ["a: [", "- a\n- b\n", b"\xff\xfe"])
def test_a_damaged_option_is_one_line(text, capsys):
    content = text if isinstance(text, bytes) else text.encode()
    Path("mine/selector/waiting.yaml").write_bytes(content)
    for words in (["selector"], ["selector", "waiting"]):
        assert cli.main(["list", "--config-dir", "mine", *words]) == 2
        assert complaint(capsys).startswith("fedexp: mine/selector/waiting.yaml ")


def test_values_that_an_experiment_sweeps_are_shown(capsys):
    lines = listed(capsys, "experiment", "dp_sweep")
    assert f"  {'local.lr=0.5,1,4':30}  swept with -m" in lines
    assert not [line for line in lines if "hydra." in line]
    assert cli.main(["list", "experiment", "dp_sweep", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sweeps"]["local.lr"] == "0.5,1,4"
