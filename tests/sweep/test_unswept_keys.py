"""A study that is made to be swept says so where one point of it is run."""

import pytest

from fedexp import cli

ALL = "is a sweep over attack, aggregator, scenario.malicious, of which this is one point; for all of it: "
MADE = ("dataset=synthetic", "dataset.train_size=2000", "rounds=1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), f"experiment=robustness {ALL}fedexp run -m experiment=robustness"),
        (
            ("attack=alie",),
            "experiment=robustness is a sweep over aggregator, scenario.malicious, of which this ",
        ),
        (("attack=alie", "aggregator=krum", "scenario.malicious=6"), ""),
    ],
)
def test_one_point_of_a_study(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "-q", "experiment=robustness", *words, *MADE]) == 0
    err = capsys.readouterr().err
    assert ("is a sweep" in err) == bool(said)
    assert said in err


def test_other_runs_say_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "-q", "experiment=smoke"]) == 0
    assert capsys.readouterr().err == ""
