from fedexp.report.draw import style
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs
from fedexp.report.topics.clock import simulated


def run_of(folder):
    return group_runs(collect_runs([folder])[0])[0].runs[0]


def test_blocks_of_the_time_line(make_run, tmp_path):
    make_run("0", metrics={"sim_s": [1.0, 3.0, 6.0, 10.0]})
    begins, ends, together = simulated.blocks(run_of(tmp_path))
    assert (begins.tolist(), ends.tolist(), together) == ([0.0, 1.0, 3.0, 6.0], [1.0, 3.0, 6.0, 10.0], 1)


def test_of_very_many_rounds_a_block_is_several(make_run, tmp_path):
    make_run("0", accuracy=[0.5] * 700, metrics={"sim_s": [float(n) for n in range(1, 701)]})
    begins, ends, together = simulated.blocks(run_of(tmp_path))
    assert together == 3
    assert (begins[1], ends[0], ends[-1], len(ends)) == (3.0, 3.0, 700.0, 234)


@style.style()
def test_methods_without_a_clock_have_no_row(make_run, tmp_path):
    make_run("0", metrics={"sim_s": [1.0, 3.0, 6.0, 10.0]})
    make_run("1", choices={"selector": "all"})
    methods = group_runs(collect_runs([tmp_path])[0])
    part = simulated.build_section(methods)
    assert part is not None
    assert [picture.methods for picture in part.pictures] == [methods[:1]] * 3
    assert simulated.build_section(methods[1:]) is None
