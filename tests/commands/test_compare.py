"""`fedexp compare` as a user meets it."""

from pathlib import Path

import pandas as pd
import pytest
from command_line import complaint
from processes import typed

from fedexp import cli
from fedexp.commands.completion import complete
from fedexp.compare import critical_difference
from fedexp.report.draw import style
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs

A, B = [0.91, 0.92, 0.93, 0.94, 0.95, 0.96], [0.90, 0.90, 0.90, 0.90, 0.90, 0.89]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def two(method):
    method("greedyfed", A)
    method("random", B)
    return ["compare", "greedyfed", "--against", "random"]


def cells(line):
    return [cell.strip() for cell in line.strip("| \n").split("|")]


def row(text, quantity):
    return cells(next(line for line in text.splitlines() if line.startswith(f"| {quantity}")))


def test_one_measure_of_six_pairs(two, capsys):
    assert cli.main([*two, "--measures", "test_accuracy"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("## greedyfed (A) against random (B)\n\n* 6 pair(s): seed 0, seed 1,")
    found = row(out, "test_accuracy")
    assert found[:6] == ["test_accuracy", "more", "6", "0.9350", "0.8983", "+0.0367"]
    assert found[7:] == ["6/0/0", "0.031", "0.031", "0.0384", "A better"]
    assert "**A better: test_accuracy**" in out
    assert not list(Path().glob("outputs/*"))


def test_four_measures_of_six_pairs_are_too_many(two, capsys):
    assert cli.main(two) == 0
    out = capsys.readouterr().out
    assert row(out, "test_accuracy")[-1] == "too few pairs"
    assert row(out, "loss_auc")[-1] == "identical"
    assert row(out, "roa@0.8")[2:8] == ["6", "4", "4", "+0", "+0 to +0", "0/6/0"]
    assert (
        "with 6 the smallest p there is is 0.0312, corrected 0.125; 8 pairs are needed for 4 row(s), 6 for one" in out
    )
    assert "toa is compared where a simulated clock ran, or by --measures" in out
    assert cli.main([*two, "--measures", "toa@0.8"]) == 0
    assert "toa counts seconds of the host's clock" in capsys.readouterr().out


def test_simulated_seconds_are_compared_without_being_asked_for(method, capsys):
    for name, last in (("ucb", 4.0), ("random", 5.0)):
        method(name, [0.9, 0.9], metrics={"sim_s": [1.0, 2.0, 3.0, last]})
    assert cli.main(["compare", "ucb", "--against", "random"]) == 0
    assert row(capsys.readouterr().out, "toa@0.8")[3:8] == ["4", "5", "-1", "-", "2/0/0"]


def test_a_run_that_never_got_there(method, capsys):
    method("greedyfed", [0.9, 0.9])
    method("random", [0.9, 0.75])
    assert cli.main(["compare", "greedyfed", "--against", "random", "--measures", "roa@0.8"]) == 0
    out = capsys.readouterr().out
    assert row(out, "roa@0.8")[2:8] == ["1 of 2", "4", "4", "+0", "-", "1/1/0"]
    assert "* roa@0.8: never reached by B alone in 1, by A alone in 0, by both in 0 pair(s)" in out


def test_more_methods_are_ranked_and_drawn(two, method, capsys):
    method("ucb", [0.8] * 6)
    words = ["compare", ".", "--against", ".", "selector=random"]
    assert cli.main([*words, "--out", "my look/all.md"]) == 0
    out = capsys.readouterr().out
    assert out.count(" against random (B)") == 2
    assert cells(out.partition("Ranks by test_accuracy")[2].splitlines()[4]) == ["greedyfed", "1.00"]
    assert out.endswith("written  my look/all.png\nwritten  my look/all.md\n")
    assert "![Critical difference](all.png)" in Path("my look/all.md").read_text()
    assert cli.main(words) == 0
    assert Path("outputs/compare.png").is_file()
    assert len(two) == 4


def test_a_method_has_the_colour_that_a_report_gives_it(two, method, monkeypatch, capsys):
    method("ucb", [0.8] * 6)
    drawn = []
    monkeypatch.setattr(critical_difference, "draw", lambda *words: drawn.append(words))
    assert cli.main(["compare", ".", "selector=ucb", "--against", ".", "selector=random"]) == 0
    assert drawn == [], "two methods have no ranks"
    assert cli.main(["compare", ".", "--against", ".", "selector=random"]) == 0
    ((_, ranks, _, colors),) = drawn
    reported = {each.label: style.color(each) for each in group_runs(collect_runs([Path()])[0])}
    assert dict(zip(ranks.names, colors, strict=True)) == reported
    assert [*ranks.names] == ["greedyfed", "ucb", "random"], "which is not the order of the report"
    assert (len(two), capsys.readouterr().err) == (4, "")


def test_the_table_in_full_precision(two, capsys):
    assert cli.main([*two, "--out=t.csv"]) == 0
    table = pd.read_csv("t.csv")
    assert table["quantity"].tolist() == ["test_accuracy", "accuracy_auc", "loss_auc", "roa@0.8"]
    assert table["difference"].tolist()[0] == pytest.approx(0.22 / 6)
    capsys.readouterr()


def test_the_table_for_a_paper(two, method, capsys):
    assert cli.main([*two, "--measures", "test_accuracy", "--out=t.tex"]) == 0
    text = Path("t.tex").read_text()
    assert text.startswith("% Differences\n% \\usepackage{booktabs}\n\\begin{tabular}{llrrrrrrr}\n\\toprule\n")
    assert "method (A) against random (B) & quantity & pairs & A & B & A $-$ B & 95 \\% interval & p & verdict" in text
    assert "greedyfed & test\\_accuracy & 6 & 0.9350 & 0.8983 & +0.0367 & +0.0140 to +0.0593 & 0.031 & A better" in text
    assert "\n% Interval: Student's t of the mean of this row alone, not corrected.\n" in text
    method("ucb", [0.8] * 6)
    assert cli.main(["compare", ".", "--against", ".", "selector=random", "--out", "ranks.tex"]) == 0
    assert "% Ranks by test_accuracy" in Path("ranks.tex").read_text()
    assert capsys.readouterr().out.endswith("written  ranks.png\nwritten  ranks.tex\n")


def test_conditions_give_the_exit_code(two, capsys):
    assert cli.main([*two, "--fail-if", "test_accuracy < -0.01", "--fail-if=loss_auc > 0"]) == 0
    assert capsys.readouterr().err == ""
    assert cli.main([*two, "--fail-if", "test_accuracy < -0.01", "--fail-if", "test_accuracy.high > 0"]) == 1
    assert complaint(capsys).startswith("fedexp: failed: test_accuracy.high > 0 holds, it is +0.0")


def test_a_measure_that_cannot_be_compared_is_left_out_with_the_reason(method, capsys):
    method("ucb", [0.9, 0.9], metrics={"test_loss": ...})
    method("random", [0.9, 0.8], metrics={"sim_s": [1.0, 2.0, 3.0, 4.0]})
    words = ["compare", "ucb", "--against", "random"]
    assert cli.main([*words, "--measures", "test_accuracy,loss_auc,toa@0.8", "--fail-if", "toa@0.8 > 1"]) == 1
    said = capsys.readouterr()
    assert "loss_auc left out: ucb/0 has none" in said.out
    assert "toa@0.8 left out: some runs have a simulated clock and some have not" in said.out
    assert "cannot be judged for ucb (A) - random (B): some runs have a simulated clock" in said.err
    assert cli.main([*words, "--measures", "test_accuracy", "--fail-if", "loss_auc > 9"]) == 1
    assert complaint(capsys).endswith("cannot be judged for ucb (A) - random (B): ucb/0 has none")
    assert cli.main([*words, "--measures", "loss_auc"]) == 2
    assert complaint(capsys).startswith("fedexp: nothing is left to compare: loss_auc left out")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "compare needs folders of runs before --against; e.g. fedexp compare outputs/A --against outputs/B"),
        (["random"], "compare needs folders of runs after --against; e.g."),
        (
            ["random", "seed=0", "random", "seed=1", "--against", "random"],
            "seed must be picked once before --against, got seed=0 and seed=1; without it every method of the",
        ),
        (["random", "--agianst", "x"], "unknown flag --agianst; did you mean --against?"),
        (["nowhere", "--against", "random"], "compare needs a folder at nowhere, but there is none"),
        (["random", "--against", "random", "selector=x"], "no run below random has selector=x; there: random"),
        (
            ["random", "--against", "random", "engine=x"],
            "engine changes no result, so that runs are not told apart by it",
        ),
        (["random", "--against", "greedyfed", "--wide", "selector=x"], "no run below greedyfed has selector=x; "),
        (["random", "--wide", "selector=x", "--against=greedyfed"], "no run below random has selector=x; "),
        (["random", "--against", "greedyfed", "--unequal", "days"], "--unequal must name some of epochs, steps, "),
        (["random", "--against", "greedyfed", "--measures="], "--measures needs names"),
        (["random", "--against", "greedyfed", "--measures", "f1"], "a quantity must be one of test_accuracy"),
        (["random", "--against", "greedyfed", "--out", "x.txt"], "--out must name a file that ends in .md, .tex or"),
        (["random", "--against", "greedyfed", "--out", "random/0/x.md"], "--out must name a file outside of run"),
        (["random", "--against", "greedyfed", "--fail-if", "f1"], "--fail-if must be"),
    ],
)
@pytest.mark.usefixtures("two")
def test_what_is_asked_wrongly(words, said, capsys):
    assert cli.main(["compare", *words]) == 2
    assert complaint(capsys).startswith(f"fedexp: {said}")


def test_a_run_that_never_looked_at_test_data_did_not_fail_to_get_there(method, capsys):
    method("ucb", [0.9, 0.9], metrics={"test_accuracy": None})
    method("random", [0.9, 0.8])
    assert cli.main(["compare", "ucb", "--against", "random", "--measures", "loss_auc,roa@0.8"]) == 0
    said = capsys.readouterr().out
    assert "roa@0.8 left out: ucb/0 has no test accuracy" in said
    assert "| roa@0.8" not in said


def test_a_number_is_picked_however_it_is_written(method, capsys):
    for name, rate in (("slow", 0.123456789), ("fast", 1e30)):
        method(name, [0.9, 0.8], keys={"local": {"lr": rate}})
    words = ["--measures", "test_accuracy"]
    assert cli.main(["compare", "slow", "local.lr=0.1234567890", "--against", "fast", "local.lr=1e30", *words]) == 0
    assert cli.main(["compare", "slow", "local.lr=0.12", "--against", "fast", *words]) == 2
    assert complaint(capsys) == "fedexp: no run below slow has local.lr=0.12; there: 0.123457"


@pytest.mark.usefixtures("two")
def test_a_failed_write_leaves_nothing(capsys, tree):
    Path("file").touch()
    before = tree(Path())
    words = ["compare", "random", "--against", "greedyfed", "--out", "file/x.md"]
    assert cli.main(words) == 2
    assert complaint(capsys).startswith("fedexp: cannot write file/x.md")
    assert tree(Path()) == before


def test_help_and_completion(capsys):
    assert cli.main(["compare", "--help"]) == 0
    assert "--fail-if" in capsys.readouterr().out
    flags = ["--against", "--fail-if", "--help", "--json", "--measures", "--out", "--unequal", "--wide"]
    assert complete("fedexp compare --") == flags
    assert complete("fedexp comp") == ["compare", "completion"]


def test_real_runs_from_the_command_line(tmp_path, capsys):
    tiny = ["dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60", "scenario.clients=6"]
    tiny += ["scenario.participants=3", "rounds=2", "engine=loop", "engine.workers=1", "pictures=false"]
    sweep = ["run", "-m", *tiny, "seed=0,1"]
    for name, words in (("even", ["selector=random"]), ("odd", ["selector=greedyfed"])):
        assert cli.main([*sweep, *words, f"hydra.sweep.dir={name}"]) == 0
    capsys.readouterr()
    assert cli.main(["compare", "odd", "--against", "even"]) == 2
    told = complaint(capsys)
    assert "hold different examples" in told
    assert "set evaluation.validation=true for all" in told
    assert cli.main([*sweep, "selector=random", "evaluation.validation=true", "hydra.sweep.dir=base"]) == 0
    compared = ["compare", "odd", "--against", "base", "--fail-if", "test_accuracy < -1"]
    done = typed(tmp_path, *compared)
    assert (done.returncode, done.stderr) == (0, "")
    assert "## greedyfed (A) against random (B)\n\n* 2 pair(s): seed 0, seed 1\n" in done.stdout


def test_the_methods_of_a_sweep_without_the_other_side(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ("experiment=smoke", "rounds=1", "pictures=false", "hydra.sweep.dir=my sweep", "algorithm=fedavg,fedprox")
    assert cli.main(["run", "-m", *words]) == 0
    capsys.readouterr()
    assert cli.main(["compare", "my sweep"]) == 2
    assert complaint(capsys) == (
        "fedexp: compare needs folders of runs after --against; e.g. fedexp compare 'my sweep' --against 'my sweep' "
        "algorithm=fedavg"
    )
