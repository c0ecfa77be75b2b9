"""Accuracies laid out by two settings."""

import itertools
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from fedexp import cli
from fedexp.core.errors import ConfigError
from fedexp.report.pages.sections import grid_sections
from fedexp.report.read.runs import collect_runs
from fedexp.report.topics.grid import notes
from fedexp.report.topics.grid.panel import name_methods, panels
from fedexp.report.topics.tables import View


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


def test_a_cell_with_fewer_seeds_decides_nothing_and_says_so(make_run, tmp_path: Path):
    for rule, attack, last in (
        ("fedavg", "none", 0.5),
        ("fedavg", "flip", 0.4),
        ("krum", "none", 0.7),
        ("krum", "flip", 0.3),
    ):
        for seed in range(1 if (rule, attack) == ("krum", "none") else 3):
            choices = {"aggregator": rule, "attack": attack}
            make_run(f"a/{rule}{attack}{seed}", seed=seed, accuracy=(0.1, last), choices=choices)
    runs = collect_runs([tmp_path])[0]
    (panel,) = panels(runs, ("aggregator", "attack"))
    grid = panel.grid("")
    assert grid.rows[1] == ["krum", "0.300 ± 0.000", "0.700 (1/3)", "-"]
    assert grid.rows[0][3] == "0.400"
    assert grid.bold == {(0, 1)}, "of flip, whose cells are complete; none has one complete cell, worst one row"
    assert notes.caveats(runs, ("aggregator", "attack")) == [
        "1 of 4 cells are not complete: they are not in bold, and their rows have no worst case."
    ]
    table = panel.frame(("aggregator", "attack"))
    assert table["seeds"].tolist() == [3, 3, 3, 1]
    assert table["planned seeds"].tolist() == [3] * 4
    assert table["final accuracy mean"].tolist() == pytest.approx([0.4, 0.5, 0.3, 0.7])


def test_what_a_sweep_planned_and_did_not_begin_is_an_empty_row(make_run, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for number, attack in enumerate(("none", "flip")):
        choices = {"aggregator": "fedavg", "attack": attack}
        make_run(f"sweep/{number}", accuracy=(0.1, 0.5 + number / 10), choices=choices)
    words = ["aggregator=fedavg,krum", "attack=none,flip", "seed=range(0,2)", "local.lr=0.10"]
    Path("sweep/multirun.yaml").write_text(yaml.safe_dump({"hydra": {"overrides": {"task": words, "hydra": []}}}))
    assert cli.main(["report", "sweep", "--grid", "aggregator,attack", "--out", "g.md"]) == 0
    page = Path("g.md").read_text()
    assert re.search(r"\| fedavg +\| 0.500 \(1/2\) \| 0.600 \(1/2\) \| +- \|", page)
    assert re.search(r"\| krum +\| +- \(0/2\) \| +- \(0/2\) \| +- \|", page)
    assert "* No run with aggregator=krum is finished.\n" in page
    assert "* Rows: aggregator: fedavg, krum\n* Columns: attack: none, flip\n* Seeds: 0\n" in page
    assert "Compared" not in page
    assert (
        "* Command: `fedexp run -m aggregator=fedavg,krum attack=none,flip 'seed=range(0,2)' local.lr=0.10`\n" in page
    )
    assert "note  No run with aggregator=krum is finished.\n" in capsys.readouterr().out
    assert "\nkrum,none,,,0,2\n" in Path("g/grid_1.csv").read_text()


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


def test_half_of_the_interval_stands_behind_a_mean_if_asked_for(study: Path):
    (panel,) = panels(collect_runs([study])[0], ("aggregator", "attack"), View(interval=True))
    assert panel.grid("").rows[0][1] == "0.110 ± 0.127", "0.02 apart: 12.706 x 0.01414 / sqrt(2)"


def test_a_grid_in_percent(study: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(study.parent)
    assert cli.main(["report", "study", "--grid", "aggregator,attack", "--percent", "--out", "g.tex"]) == 0
    text = Path("g.tex").read_text()
    assert "% Final test accuracy in %\n" in text
    assert "11.00 $\\pm$ 1.41" in text
    assert "% Final test accuracy in % of 6 runs; a cell is the mean ± sample standard deviation over the seeds" in text


def test_panels_share_their_colours(make_run, tmp_path: Path):
    for malicious, values in ((0, (0.9, 0.8)), (2, (0.5, 0.1))):
        for attack, rule in itertools.product(("flip", "zero"), ("fedavg", "krum")):
            make_run(
                f"{malicious}{attack}{rule}",
                accuracy=(values[attack == "zero"],),
                choices={"aggregator": rule, "attack": attack},
                keys={"scenario.malicious": malicious},
            )
    by = ("aggregator", "attack")
    drawn = grid_sections(panels(collect_runs([tmp_path])[0], by), by)
    limits = [section.pictures[0].figure.axes[0].images[0].get_clim() for section in drawn]
    assert limits == [(0.1, 0.9)] * 2
    (picture, *_) = grid_sections(panels(collect_runs([tmp_path])[0], by, View(percent=True)), by)[0].pictures
    assert picture.figure.axes[0].images[0].get_clim() == (10, 90)
    assert picture.title == "Final test accuracy in %"


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


def test_the_table_for_a_paper(study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(study.parent)
    assert cli.main(["report", "study", "--grid", "aggregator,attack", "--out", "heat.tex"]) == 0
    text = Path("heat.tex").read_text()
    assert text.startswith("% Final test accuracy\n")
    assert "fedavg & 0.110 $\\pm$ 0.014 &" in text
    assert "% 2 unfinished run(s) are left out." in text
    assert "heat" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("aggregator", "--grid must be two settings"),
        ("aggregator,aggregator", "--grid must be two settings"),
        ("aggregator,atack", "no run has a setting atack"),
        ("method,seed", "seed is no setting, since a cell is a mean over seeds"),
        ("aggregator,seed", "seed is no setting, since a cell is a mean over seeds; name what differs besides"),
        (
            "aggregator,selector",
            "selector is random in every run; name what differs (attack, aggregator), or run more of it: "
            "fedexp run -m selector=random,...",
        ),
    ],
)
def test_refusals(study: Path, by: str, message: str, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["report", str(study), f"--grid={by}"]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_runs_that_are_not_finished_are_no_grid(make_run, tmp_path: Path):
    for rule in ("fedavg", "krum"):
        for attack in ("none", "flip"):
            make_run(f"{rule}{attack}", choices={"aggregator": rule, "attack": attack}, finished=False)
    with pytest.raises(ConfigError, match="--grid needs finished runs, but none of 4 is"):
        panels(collect_runs([tmp_path])[0], ("aggregator", "attack"))


def test_runs_that_have_no_accuracy_on_test_data_are_no_grid(make_run, tmp_path: Path):
    for rule in ("fedavg", "krum"):
        for attack in ("none", "flip"):
            folder = make_run(f"{rule}{attack}", choices={"aggregator": rule, "attack": attack})
            table = pd.read_csv(folder / "metrics.csv").drop(columns=["test_accuracy"])
            table.to_csv(folder / "metrics.csv", index=False)
    with pytest.raises(ConfigError, match="--grid shows test_accuracy, which none of 4 runs has at its end"):
        panels(collect_runs([tmp_path])[0], ("aggregator", "attack"))


def test_a_setting_that_is_unknown_names_the_nearest(study: Path):
    with pytest.raises(
        ConfigError, match=r"no run has a setting agregator; did you mean aggregator or pre_aggregation\?"
    ):
        panels(collect_runs([study])[0], ("agregator", "attack"))


def test_methods_have_a_row_each_whatever_sets_them_apart(make_run, tmp_path):
    for attack, byzantine in (("none", 0), ("alie", 3)):
        for rule, rate in (("fedavg", 0.1), ("krum", 0.01)):
            make_run(
                f"{rule}{attack}",
                choices={"aggregator": rule, "attack": attack},
                keys={"local.lr": rate, "attack.z": byzantine, "aggregator.byzantine": "${attack.z}"},
            )
    runs = collect_runs([tmp_path])[0]
    (panel,) = panels(name_methods(runs, ("method", "attack")), ("method", "attack"))
    assert [name.partition(",")[0] for name in panel.rows] == ["fedavg", "krum"]
    assert set(panel.columns) == {"none", "alie"}
    assert panel.complete.all()
    assert name_methods(runs, ("aggregator", "attack")) == runs
