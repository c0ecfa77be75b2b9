import pytest

from fedexp.core.errors import ConfigError
from fedexp.report.draw import style
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs
from fedexp.report.topics import federations


@style.style()
def test_each_different_federation_is_drawn_once(make_run, tmp_path):
    folders = [make_run(str(number), seed=number) for number in range(3)]
    (folders[-1] / "federation.csv").write_text("client,examples,cat,dog\n0,1,1,0\n")
    part = federations.build_section(group_runs(collect_runs([tmp_path])[0]))
    assert part is not None
    assert [one.caption for one in part.pictures] == ["Seeds 0, 1 of every method.", "Seed 2 of every method."]


@style.style()
def test_of_very_many_federations_the_first_are_drawn(make_run, tmp_path):
    for number in range(10):
        (make_run(str(number), seed=number) / "federation.csv").write_text(
            f"client,examples,cat\n0,{number},{number}\n"
        )
    part = federations.build_section(group_runs(collect_runs([tmp_path])[0]))
    assert part is not None
    assert len(part.pictures) == 8
    assert part.note.endswith("The first 8 of 10 federations.")


@pytest.mark.parametrize("row", ["0,1,x", "0,1,", "0,1,0.5"])
def test_what_is_no_number_of_examples_is_named(make_run, tmp_path, row):
    (make_run("0") / "federation.csv").write_text(f"client,examples,cat\n{row}\n")
    with pytest.raises(ConfigError, match="must have whole numbers in its column cat; is it damaged"):
        federations.find_partitions(group_runs(collect_runs([tmp_path])[0]))


@pytest.mark.parametrize("text", ["", "client,examples,cat\n", "client,examples\n0,1\n"])
def test_a_table_without_clients_or_classes_is_left_out(make_run, tmp_path, text):
    (make_run("0") / "federation.csv").write_text(text)
    assert federations.find_partitions(group_runs(collect_runs([tmp_path])[0])) == []
