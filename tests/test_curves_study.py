"""The learning curves of the selection study: collected by hand from small folders."""

from pathlib import Path

from script_modules import imported

FOLDER = Path(__file__).parents[1] / "scripts" / "studies" / "selection"


def test_curves_are_means_with_their_range(tmp_path: Path):
    with imported(FOLDER, "curves") as (curves,):
        for name in curves.PUBLISHED.values():
            (tmp_path / name).write_text("loss,accuracy\n1.0,0.5\n0.5,0.75\n")
        for prefix in curves.RUNS.values():
            for seed, first in enumerate((0.25, 0.75)):
                folder = tmp_path / f"{prefix}final-1a" / str(seed)
                folder.mkdir(parents=True)
                (folder / "metrics.csv").write_text(f"round,test_accuracy\n1,{first}\n2,0.5\n")
        lines = curves.collect(tmp_path, tmp_path)
    assert lines[:2] == [
        ["random", "published", "1", "0.5", "0.5", "0.5", "1"],
        ["random", "published", "2", *["0.75"] * 3, "1"],
    ]
    assert ["GreedyFed", "file order", "1", "0.5000", "0.2500", "0.7500", "2"] in lines
    assert len(lines) == 3 * 2 + 9 * 2
