import numpy as np
import pytest

from fedexp.report.draw import style
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs
from fedexp.report.topics import selections


def test_the_density_of_selections():
    assert selections.density(np.array([3, 3, 3])) is None
    assert selections.density(np.array([3])) is None
    curve = selections.density(np.array([20, 22, 24]))
    assert curve is not None
    x, density = curve
    assert x[np.argmax(density)] == pytest.approx(22, abs=0.1)
    assert np.trapezoid(density, x) == pytest.approx(1, abs=0.01)
    cut = selections.density(np.array([0, 1, 5]))
    assert cut is not None
    assert cut[0][0] == 0


def test_the_mean_selections_of_each_client(make_run, tmp_path):
    make_run("0", seed=0)
    (make_run("1", seed=1) / "clients.csv").write_text("round,client\n1,3\n2,3\n")
    method = group_runs(collect_runs([tmp_path])[0])[0]
    assert selections.mean_selections(method).tolist() == [2.0, 2.0, 0.0, 1.0]
    assert selections.by_rank(method.runs[1])[1].tolist() == [2.0, 0.0, 0.0, 0.0]


@style.style()
def test_ranks_are_whole_numbers(make_run, tmp_path):
    make_run("0")
    part = selections.build_section(group_runs(collect_runs([tmp_path])[0]))
    assert part is not None
    (ranks,) = [picture for picture in part.pictures if picture.name == "selections_by_rank"]
    axes = ranks.figure.axes[0]
    low, high = axes.get_xlim()
    assert [x for x in axes.get_xticks() if low <= x <= high] == [1, 2, 3, 4]


@style.style()
def test_long_names_of_clients_are_not_cut_and_leave_the_map_its_height(make_run, tmp_path):
    names = [*("Universitätsklinikum Charité Mitte" for _ in range(2)), "Oslo", "Zürich"]
    rows = "".join(f"{client},{name},1\n" for client, name in enumerate(names))
    (make_run("0") / "federation.csv").write_text(f"client,name,examples\n{rows}")
    part = selections.build_section(group_runs(collect_runs([tmp_path])[0]))
    assert part is not None
    figure = part.pictures[-1].figure
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == names
    boxes = [label.get_window_extent() for label in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    assert min(min(box.x0, box.y0) for box in boxes) >= 0
    assert axes.bbox.height / figure.dpi > 0.25, "inches of the one row"
