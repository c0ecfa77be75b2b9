import json

from fedexp.report.draw import style
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs
from fedexp.report.topics import privacy


@style.style()
def test_the_ledger_of_a_private_run(make_run, tmp_path):
    folder = make_run("0", metrics={"privacy.epsilon_pld": [0.5, 1.0, 1.5, 2.0]}, keys={"privacy.delta": 1e-5})
    told = {"privacy": {"epsilon_pld": 2.0, "delta": 1e-5, "promise": "a promise"}}
    (folder / "summary.json").write_text(json.dumps(told))
    make_run("1", choices={"selector": "all"})
    part = privacy.build_section(group_runs(collect_runs([tmp_path])[0]))
    assert part is not None
    spent, gained = part.pictures
    assert spent.figure.axes[0].get_ylabel() == "ε at δ = 1e-05 (PLD)"
    assert [len(picture.methods) for picture in (spent, gained)] == [1, 2], "who is not private is beside, for accuracy"
    (_, ledger), (_, promises) = part.tables
    assert (ledger.headings, list(ledger.rows)) == (("method", "epsilon (PLD)", "delta"), [("random", "2", "1e-05")])
    assert promises.rows == [("a promise", "random")]


def test_without_a_ledger_there_is_no_part(make_run, tmp_path):
    make_run("0")
    assert privacy.build_section(group_runs(collect_runs([tmp_path])[0])) is None
