"""Central, local and federated learning on one table of three hospitals, typed as a user types them."""

from pathlib import Path

import numpy as np
import pandas as pd
from processes import typed

SITES = {"Aachen": 40, "Bonn": 60, "Köln": 20}
RUN = (
    "dataset=table", "dataset.file=patients.csv", "dataset.target=outcome", "dataset.client=hospital",
    "federation=subject", "evaluation.personal_fraction=0.2", "rounds=2", "pictures=false", "engine.workers=1",
)  # fmt: skip


def write_patients(path: Path) -> None:
    """Whoever has more of `a` than of `b` is ill, but in Bonn whoever has less."""
    rng, rows = np.random.default_rng(0), []
    for site, patients in SITES.items():
        a, b = rng.normal(size=(2, patients))
        ill = (a > b) != (site == "Bonn")
        rows += [(*pair, site, "ill" if sick else "well") for *pair, sick in zip(a, b, ill, strict=True)]
    pd.DataFrame(rows, columns=["a", "b", "hospital", "outcome"]).to_csv(path, index=False)


def test_the_three_are_run_compared_and_reported(tmp_path: Path):
    write_patients(tmp_path / "patients.csv")
    swept = typed(tmp_path, "run", "-m", "algorithm=fedavg,local,central", *RUN, "hydra.sweep.dir=three")
    assert swept.returncode == 0, swept.stderr
    fedavg, local, central = (tmp_path / "three" / str(number) for number in range(3))
    trained = [pd.read_csv(folder / "metrics.csv")["examples"].tolist() for folder in (fedavg, local, central)]
    assert trained[0] == trained[1] == trained[2]
    assert (fedavg / "federation.csv").read_bytes() == (central / "federation.csv").read_bytes()
    held_out = [pd.read_csv(folder / "client_scores.csv")["examples"].tolist() for folder in (fedavg, local, central)]
    assert held_out[0] == held_out[1] == held_out[2]

    measures = "test_accuracy,personal_accuracy,personal_worst_decile"
    for name in ("local", "central"):
        words = ("three", f"algorithm={name}", "--against", "three", "algorithm=fedavg", "--measures", measures)
        compared = typed(tmp_path, "compare", *words, "--wide")
        assert compared.returncode == 0, compared.stderr
        assert f"* A is {name}, B federated training, of the same data" in compared.stdout
        told = pd.read_csv(fedavg.parent / ("1" if name == "local" else "2") / "metrics.csv").iloc[-1]
        assert f"| personal_accuracy     | more   |     1 | {told['personal_accuracy']:.4f} |" in compared.stdout

    together = typed(tmp_path, "report", "three", "--out", "report.md")
    assert together.returncode == 0, together.stderr
    lines = (tmp_path / "report" / "sites.md").read_text().splitlines()
    heading, _, *rows = ([cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines)
    assert [heading[0], *heading[-3:]] == ["site", "fedavg", "local", "central"]
    assert [heading[1], heading[3]] == ["scored on", "trained on"]
    assert heading[2].startswith("of them "), "of the second class"
    scores = [pd.read_csv(folder / "client_scores.csv")["personal"] for folder in (fedavg, local, central)]
    expected = [[site, *(f"{each[row]:.4f}" for each in scores)] for row, site in enumerate(SITES)]
    assert [[row[0], *row[-3:]] for row in rows] == expected
    table = pd.read_csv(tmp_path / "report" / "at_clients.csv").set_index("method")
    assert table.loc["local", "personal accuracy mean"] > table.loc["central", "personal accuracy mean"]
    assert typed(tmp_path, "verify", "three/1").returncode == 0


def test_a_client_is_exported_by_its_name(tmp_path: Path):
    write_patients(tmp_path / "patients.csv")
    assert typed(tmp_path, "run", "algorithm=local", *RUN, "hydra.run.dir=alone").returncode == 0
    exported = typed(tmp_path, "export", "alone", "--client", "Köln", "--to", "köln")
    assert exported.returncode == 0, exported.stderr
    assert "The model that client Köln uses" in (tmp_path / "köln" / "card.md").read_text()
    assert typed(tmp_path, "export", "alone", "--client", "2", "--to", "two").returncode == 0
    assert (tmp_path / "köln" / "model.safetensors").read_bytes() == (tmp_path / "two/model.safetensors").read_bytes()
    refused = typed(tmp_path, "export", "alone", "--client", "Koln", "--to", "koln")
    assert (
        refused.stderr
        == "fedexp: --client must be a client of the run, Aachen, Bonn, Köln, got Koln; did you mean Köln?\n"
    )
