"""What each part of the page computes, and when it is left out."""

from pathlib import Path

import numpy as np
import pytest

from fedexp.report.html.heat import Heat, draw, layout, strength
from fedexp.report.html.panels import clusters, learning, privacy, provenance, rounds, selections, simulated
from fedexp.report.markup import Grid
from fedexp.report.membership import Memberships
from fedexp.report.methods import group
from fedexp.report.runs import collect


def methods_of(tmp_path: Path):
    return group(collect([tmp_path])[0])


def heat(values, **more) -> Heat:
    cells = np.array(values, dtype=float)
    names = {"rows": [str(n) for n in range(len(cells))], "columns": [str(n) for n in range(cells.shape[1])]}
    return Heat(title="T", horizontal="C", vertical="R", values=cells, told="x", **names, **more)


def test_the_strength_of_a_cell_is_its_share_of_the_greatest():
    assert strength(heat([[0.0, 5.0, 10.0, np.nan]])).tolist() == [[0, 12, 24, -1]]
    assert strength(heat([[0.5]], greatest=1.0)).tolist() == [[12]]


def test_alike_cells_beside_each_other_are_one_box():
    one = heat([[10.0] * 4, [0.0, 0.0, 5.0, 5.0]])
    left, wide, end = layout(one).left, layout(one).wide, 630  # the width of a map less 10
    figure = draw(one)
    assert figure.count('class="heated"') == 2
    assert f'fill-opacity="1" d="M{left:g} 8h{end - left:g}v26H{left:g}z"' in figure
    assert f'fill-opacity="0.5" d="M{left + 2 * wide:g} 34h{2 * wide:g}v26H{left + 2 * wide:g}z"' in figure


def test_the_seconds_of_stages_and_what_is_beyond_them(make_run, tmp_path: Path):
    stages = {"select_s": 0.1, "train_s": 0.2, "aggregate_s": 0.05, "evaluate_s": [0.1, None, 0.1, None]}
    make_run("0", metrics=stages)  # host_s grows by 0.5 a round
    assert rounds.profile(methods_of(tmp_path)[0]) == pytest.approx([0.1, 0.2, 0.05, 0.05, 0.1])


def test_without_stages_there_is_no_profile(make_run, tmp_path: Path):
    make_run("0")
    assert rounds.profile(methods_of(tmp_path)[0]) is None


def test_the_mean_selections_of_each_client(make_run, tmp_path: Path):
    make_run("0", seed=0)
    (make_run("1", seed=1) / "clients.csv").write_text("round,client\n1,3\n2,3\n")
    method = methods_of(tmp_path)[0]
    assert selections.mean_selections(method).tolist() == [2.0, 2.0, 0.0, 1.0]
    assert selections.by_rank(method.runs[1])[1].tolist() == [2.0, 0.0, 0.0, 0.0]


def test_blocks_of_the_time_line(make_run, tmp_path: Path):
    make_run("0", metrics={"sim_s": [1.0, 3.0, 6.0, 10.0]})
    run = methods_of(tmp_path)[0].runs[0]
    begins, ends, together = simulated.blocks(run)
    assert (begins.tolist(), ends.tolist(), together) == ([0.0, 1.0, 3.0, 6.0], [1.0, 3.0, 6.0, 10.0], 1)


def test_of_very_many_rounds_a_block_is_several(make_run, tmp_path: Path):
    make_run("0", accuracy=[0.5] * 700, metrics={"sim_s": [float(n) for n in range(1, 701)]})
    begins, ends, together = simulated.blocks(methods_of(tmp_path)[0].runs[0])
    assert together == 3
    assert (begins[1], ends[0], ends[-1], len(ends)) == (3.0, 3.0, 700.0, 234)


def test_clients_in_the_order_of_their_last_cluster():
    cluster = np.array([[0, 2], [0, 1], [1, 1]])
    none = np.zeros_like(cluster, dtype=bool)
    shown, rows = clusters.ordered(Memberships(cluster, none, none))
    assert rows == [1, 2, 0]
    assert shown.cluster.tolist() == [[0, 1], [1, 1], [0, 2]]


def test_the_ledger_of_a_private_run(make_run, tmp_path: Path):
    make_run("0", metrics={"privacy.epsilon_pld": [0.5, 1.0, 1.5, 2.0]}, keys={"privacy.delta": 1e-5})
    part = privacy.section(methods_of(tmp_path))
    assert part is not None
    assert "Epsilon by round" in part.body
    assert "at δ = 1e-05 (PLD)" in part.body


def test_columns_of_a_part_that_vary_are_further_measures(make_run, tmp_path: Path):
    make_run(
        "0", metrics={"attack.malicious": [0, 1, 0, 2], "aggregator.dropped": 0, "selector.shapley_s": [1, 2, 3, 4]}
    )
    assert learning.further(methods_of(tmp_path)) == ["attack.malicious"]


def test_what_all_runs_share_is_said_once():
    grid = Grid(("folder", "versions", "commit", "device"), [["a", "torch 2", "x", "-"], ["b", "torch 2", "y", "-"]], 4)
    common, left = provenance.parted(grid)
    assert common == [("versions", "torch 2")]
    assert (left.headings, left.rows) == (["folder", "commit"], [["a", "x"], ["b", "y"]])


def test_more_settings_than_methods_are_rows():
    wide = Grid(("method", "lr", "momentum"), [["a", "0.1", "0.9"]], 1)
    assert provenance.upright(wide) == Grid(("setting", "a"), [("lr", "0.1"), ("momentum", "0.9")], 2)
    assert provenance.upright(Grid(("method", "lr"), [["a", "0.1"], ["b", "1"]])).headings == ("method", "lr")


def test_an_old_folder_without_anything_but_metrics(make_run, tmp_path: Path):
    folder = make_run("0", metrics={"participants": ..., "host_s": ..., "sim_s": ..., "test_loss": ...}, finished=False)
    for name in ("clients.csv", "federation.csv"):
        (folder / name).unlink()
    methods = methods_of(tmp_path)
    panels = (simulated.section, privacy.section, rounds.section, selections.section, clusters.section)
    assert [panel(methods) for panel in panels] == [None] * 5
    assert learning.section(methods) is not None
