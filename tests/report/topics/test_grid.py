"""Accuracies laid out by two settings."""

from pathlib import Path

import numpy as np
import pytest

from fedexp import cli
from fedexp.core.errors import ConfigError
from fedexp.report.read.runs import collect_runs
from fedexp.report.topics.grid import panels


@pytest.fixture
def study(make_run, tmp_path: Path) -> Path:
    """Two rules by two attacks, two seeds each; one cell is unfinished."""
    accuracies = {("fedavg", "none"): 0.9, ("fedavg", "flip"): 0.1, ("krum", "none"): 0.8, ("krum", "flip"): 0.7}
    for (rule, attack), accuracy in accuracies.items():
        for seed in (0, 1):
            make_run(
                f"study/{rule}_{attack}_{seed}",
                seed=seed,
                accuracy=(0.3, accuracy + 0.02 * seed),
                choices={"aggregator": rule, "attack": attack},
                keys={"attack.scale": 3 if attack == "flip" else None},
                finished=(rule, attack) != ("krum", "flip"),
            )
    return tmp_path / "study"


def test_means_over_seeds_and_the_worst_case(study: Path):
    (panel,) = panels(collect_runs([study])[0], ("aggregator", "attack"))
    assert panel.title == ""
    assert (panel.rows, panel.columns) == (("fedavg", "krum"), ("flip", "none"))
    assert panel.values[0].tolist() == pytest.approx([0.11, 0.91])
    assert panel.values[1, 1] == pytest.approx(0.81)
    assert np.isnan(panel.values[1, 0])
    assert panel.worst[0] == pytest.approx(0.11)
    assert np.isnan(panel.worst[1]), "a missing cell leaves the worst case open"


def test_what_else_differs_makes_panels(make_run, tmp_path: Path):
    for lr in (0.1, 0.2):
        for rule in ("a", "b"):
            for seed, clients in ((0, 4), (0, 8)):
                make_run(
                    f"{lr}{rule}{clients}",
                    seed=seed,
                    accuracy=(lr + clients / 100,),
                    choices={"aggregator": rule},
                    keys={"local.lr": lr, "scenario.clients": clients},
                )
    found = panels(collect_runs([tmp_path])[0], ("aggregator", "local.lr"))
    assert sorted(panel.title for panel in found) == ["scenario.clients=4", "scenario.clients=8"]
    (four,) = (panel for panel in found if panel.title.endswith("4"))
    assert four.columns == ("0.1", "0.2")
    assert four.values.tolist() == [pytest.approx([0.14, 0.24])] * 2


def test_a_panel_shows_what_it_has(make_run, tmp_path: Path):
    """Without malicious clients there is nothing to attack: the worst case of the others does not wait for it."""
    for malicious, attacks in ((0, ["none"]), (2, ["flip", "zero"])):
        for attack in attacks:
            for rule in ("fedavg", "krum"):
                make_run(
                    f"{malicious}{attack}{rule}",
                    accuracy=(0.5 + len(attack) / 100,),
                    choices={"aggregator": rule, "attack": attack},
                    keys={"scenario.malicious": malicious},
                )
    nobody, two = panels(collect_runs([tmp_path])[0], ("aggregator", "attack"))
    assert nobody.columns == ("none",)
    assert two.columns == ("flip", "zero")
    assert two.worst.tolist() == [pytest.approx(0.54)] * 2


def test_the_page(study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(study.parent)
    assert cli.main(["report", "study", "--grid", "aggregator,attack", "--out", "heat.md"]) == 0
    page = Path("heat.md").read_text()
    assert "| fedavg " in page
    assert "2 unfinished run(s) are left out" in page
    assert Path("heat/grid_1.png").read_bytes().startswith(b"\x89PNG")
    assert Path("heat/grid_1.tex").exists()
    assert capsys.readouterr().out.endswith("page  heat.md\n")


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("aggregator", "--grid must be two settings"),
        ("aggregator,aggregator", "--grid must be two settings"),
        ("aggregator,atack", "no run has a setting atack"),
        ("aggregator,selector", "selector is random in every run"),
    ],
)
def test_refusals(study: Path, by: str, message: str, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["report", str(study), f"--grid={by}"]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_setting_that_is_unknown_names_the_nearest(study: Path):
    with pytest.raises(
        ConfigError, match=r"no run has a setting agregator; did you mean aggregator or pre_aggregation\?"
    ):
        panels(collect_runs([study])[0], ("agregator", "attack"))
