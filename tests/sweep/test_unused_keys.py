"""A number of the scenario that no chosen part follows is told where it is typed."""

import pytest

from fedexp import cli

MADE = ("dataset=synthetic", "dataset.train_size=500", "rounds=1", "pictures=false")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("local=adam", "scenario.local_lr=0.5"),
            "fedexp: scenario.local_lr does nothing: no chosen part follows it (local.lr=0.001)\n",
        ),
        (
            ("aggregator=median", "scenario.byzantine=3"),
            "fedexp: scenario.byzantine does nothing: no chosen part follows it\n",
        ),
        (("aggregator=krum", "scenario.byzantine=1", "scenario.local_lr=0.2"), ""),
        (("local=adam",), ""),
        (
            ("algorithm=fedsgd", "scenario.participants=3"),
            "fedexp: scenario.participants does nothing: no chosen part follows it\n",
        ),
        (("scenario.clients=5", "scenario.participants=3"), ""),
        (("aggregator=krum", "selector.count=5", "scenario.participants=4"), ""),  # scenario.byzantine follows it
    ],
)
def test_a_number_that_nothing_follows(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "-q", *words, *MADE]) == 0
    assert capsys.readouterr().err == said
