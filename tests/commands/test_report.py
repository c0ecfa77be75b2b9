"""`fedexp report` as a user meets it."""

import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from fedexp import cli
from fedexp.commands.completion import complete


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def sweep(make_run, tmp_path):
    for seed in (0, 1):
        make_run(f"sweep/{seed}", seed=seed, finished=seed == 0)
        make_run(f"sweep/{seed + 2}", seed=seed, choices={"selector": "all"})
    (tmp_path / "sweep" / "multirun.yaml").touch()
    return Path("sweep")


def test_the_markdown_page_of_a_sweep(sweep, capsys):
    assert cli.main(["report", "sweep", "--out", "sweep/report.md"]) == 0
    out = capsys.readouterr().out
    page = (sweep / "report.md").read_text()
    assert out.endswith("page  sweep/report.md\n")
    assert "| random | 1 (1 unfinished) |" in out
    assert out.partition("Results\n\n")[2].partition("\n\n")[0] in page.replace("**", "")
    targets = re.findall(r"\]\(([^)]+)\)", page)
    assert {"report/learning.png", "report/results.csv", "report/results.tex"} <= set(targets)
    assert all((sweep / target).is_file() for target in targets)
    assert {f"report/{path.name}" for path in (sweep / "report").iterdir()} == set(targets)
    assert "`sweep/1` is left out: it ended in round 4 of 4, and other runs of random are finished." in page
    assert re.search(
        r"\| sweep/2 +\| all +\| 0 +\| 4 +\| finished +\| fedexp 0.1.0, torch 2.9 +\| 0123456789 \(cha", page
    )
    assert "## Differences" in page
    assert (sweep / "report/differences.csv").read_text() == "method,selector\nrandom,random\nall,all\n"


def test_an_interrupted_sweep_says_that_points_may_be_missing(sweep, capsys):
    note = (
        "The sweep sweep did not end, and points that it did not begin are missing here; go on with: "
        "fedexp resume sweep"
    )
    assert cli.main(["report", "sweep"]) == 0
    assert f"note  {note}\n" in capsys.readouterr().out
    assert note in (sweep / "report.html").read_text()
    (sweep / "sweep.csv").touch()
    assert cli.main(["report", "sweep"]) == 0
    assert "note" not in capsys.readouterr().out


@pytest.mark.usefixtures("sweep")
def test_chosen_columns_of_one_table_are_a_page_of_either_kind(make_run):
    make_run("sweep/auroc", seed=0, finished=True, metrics={"test_auroc": [0.6, 0.7, 0.8, 0.9]})
    for page in ("chosen.md", "chosen.html"):
        assert cli.main(["report", "sweep", "--columns", "final accuracy", "--out", page]) == 0
        assert "Further metrics" not in Path(page).read_text()


def test_a_line_a_site_and_a_column_a_method(make_run, capsys):
    for number, scores in enumerate(("1.0,0.25", "0.5,")):
        run = make_run(f"sites/{number}", choices={"selector": f"s{number}"})
        first, second = scores.split(",")
        lines = [f"0,007,accuracy,9,{3 + number},0.1,{first}", f"1,NA,accuracy,9,0,,{second}"]
        head = "client,name,metric,examples,positives,global,personal"
        (run / "client_scores.csv").write_text("\n".join([head, *lines, ""]))
        sizes = [f"0,007,{90 + number},60,{30 + number}", "1,NA,8,8,0", ""]
        (run / "federation.csv").write_text("\n".join(["client,name,examples,well,sick", *sizes]))
    assert cli.main(["report", "sites", "--percent", "--out", "sites.md"]) == 0
    out = capsys.readouterr().out
    assert re.search(
        r"\| 007 +\| +9 \| +3 to 4 \| +90 to 91 \| +100\.00 \| +50\.00 \|\n"
        r"\| NA +\| +9 \| +0 \| +8 \| +25\.00 \| +- \(0/1\) \|",
        out,
    )
    assert re.search(r"\| site, in % \| +scored on \| +of them sick \| +trained on \|", out)
    assert "site, in %" in out
    assert "007 mean" in Path("sites/sites.csv").read_text()
    assert "**100.00**" in Path("sites.md").read_text()
    scores = Path("sites/1/client_scores.csv")
    scores.write_text(scores.read_text().replace("NA", "007"))
    assert cli.main(["report", "sites"]) == 0
    assert "at each site" not in capsys.readouterr().out


@pytest.mark.parametrize("words", [(), ("--grid", "aggregator,attack")])
def test_a_method_whose_runs_all_failed_is_told_with_the_reason(make_run, capsys, words):
    for number, (rule, attack) in enumerate(product(("fedavg", "krum"), ("none", "alie"))):
        folder = make_run(f"many/{number}", choices={"aggregator": rule, "attack": attack})
        if number == 3:
            (folder / "metrics.csv").write_text("")
            (folder / "summary.json").unlink()
            (folder / "traceback.txt").write_text("Traceback\nfedexp.core.errors.RunError: 2f + 2 < n\n")
    assert cli.main(["report", "many", *words]) == 0
    out = capsys.readouterr().out
    assert "attack=alie, krum: 1 run has no finished round and is left out (many/3): 2f + 2 < n\n" in out
    assert "and is left out" in Path("many/report.html").read_text()
    assert not words or re.search(r"\| krum +\| +0\.900 \| +- \| +- \|", out)


@pytest.mark.usefixtures("sweep")
def test_tables_alone_for_a_paper(capsys):
    assert cli.main(["report", "sweep", "--columns", "final accuracy", "--interval", "--out", "t.tex"]) == 0
    text = Path("t.tex").read_text()
    assert "% Mean ± half of Student's 95 % interval of the mean over the seeds.\n" in text
    assert text.startswith("% Results\n% \\usepackage{booktabs}\n\\begin{tabular}{lrr}\n\\toprule\nmethod & seeds &")
    assert "% sweep/1 is left out: it ended in round 4 of 4, and" in text.replace("`", "")
    assert capsys.readouterr().out.endswith("page  t.tex\n")
    assert [path.name for path in Path().iterdir()] in (["sweep", "t.tex"], ["t.tex", "sweep"])


def test_again_on_its_own_folder(sweep, capsys):
    assert cli.main(["report", "sweep"]) == 0
    first = (sweep / "report.html").read_bytes()
    assert cli.main(["report", "sweep"]) == 0
    assert (sweep / "report.html").read_bytes() == first
    capsys.readouterr()


@pytest.mark.usefixtures("sweep")
def test_several_folders_and_a_place_for_the_page(capsys):
    assert cli.main(["report", "sweep/0", "sweep/2"]) == 0
    assert Path("outputs/report.html").is_file()
    assert cli.main(["report", "sweep/0", "--out", "my page/first look.md"]) == 0
    assert (
        "Accuracy. random from 0.4 at round 1 to 0.9 at round 4.](first%20look/learning.png)"
        in Path("my page/first look.md").read_text()
    )
    assert Path("my page/first look/learning.png").is_file()
    assert cli.main(["report", "--out=x.md", "sweep/0"]) == 0
    assert "page  x.md" in capsys.readouterr().out


def test_a_cell_of_a_grid_counts_a_repeated_seed_once(make_run, capsys):
    for name, seed, last in (("a/0", 0, 0.5), ("a/1", 0, 0.5), ("a/2", 1, 0.9)):
        for rule in ("median", "krum"):
            for attack in ("none", "gaussian"):
                made = f"{name}{rule}{attack}"
                make_run(made, seed=seed, accuracy=(0.1, last), choices={"aggregator": rule, "attack": attack})
    assert cli.main(["report", "a", "--grid", "aggregator,attack", "--out", "grid.md"]) == 0
    assert "| median              | 0.700 ± 0.283 | 0.700 ± 0.283 | 0.700 |" in Path("grid.md").read_text()
    capsys.readouterr()


def test_doubtful_folders_are_named_on_the_page(make_run, capsys):
    make_run("a/0")
    make_run("a/1")
    (make_run("a/2") / "metrics.csv").write_text("")
    assert cli.main(["report", "a", "--out", "report.md"]) == 0
    page = Path("report.md").read_text()
    told = "seed 0 was run 2 times; `a/0` counts, not `a/1`; all end with the same accuracy"
    assert f"* random: {told}.\n" in page
    assert re.search(r"\| random \|\s+1 \(1 repeated\) \|", page)
    assert re.search(r"\| a/1 +\| random \| 0 +\| 4 +\| repeat", page)
    assert "* random: 1 run has no finished round and is left out (a/2): not begun, at work or interrupted\n" in page
    assert "## Differences" not in page
    capsys.readouterr()


@pytest.mark.usefixtures("sweep")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "report needs folders of runs; e.g. fedexp report outputs/latest"),
        (["nowhere"], "report needs a folder at nowhere, but there is none; give run folders or folders of runs"),
        (["sweep", "--ot", "x.md"], "unknown flag --ot; did you mean --out?"),
        (["sweep", "--out"],
         "--out must name a file that ends in .html, .md or .tex, got none; e.g. --out report.html"),
        (["sweep", "--out", "x.pdf"],
         "--out must name a file that ends in .html, .md or .tex, got x.pdf; e.g. --out report.html"),
        (["sweep", "--out", "sweep/0.md"],
         "--out sweep/0.md would put its pictures into the run folder sweep/0; rename it"),
        (["sweep", "--out", "sweep/multirun.yaml/x.md"],
         "cannot write sweep/multirun.yaml/x.md: Not a directory; give another --out"),
    ],
)  # fmt: skip
def test_a_wrong_word_is_one_line_and_exit_code_2(words, message, capsys):
    before = sorted(Path.cwd().rglob("*"))
    assert cli.main(["report", *words]) == 2
    assert capsys.readouterr().err == f"fedexp: {message}\n"
    assert sorted(Path.cwd().rglob("*")) == before


@pytest.mark.usefixtures("sweep")
def test_as_a_process_without_torch():
    code = """
import sys
from fedexp.cli import main
code = main(['report', 'sweep'])
print([name for name in ('torch', 'hydra', 'matplotlib.pyplot') if name in sys.modules])
sys.exit(code)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False, env=os.environ
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("page  sweep/report.html\n[]\n")


def test_completion(make_run):
    for number in (0, 1):
        make_run(f"outputs/multirun/2026-01-02/11-00-00/{number}")
    Path("outputs/multirun/2026-01-02/11-00-00/multirun.yaml").touch()
    sweep = "outputs/multirun/2026-01-02/11-00-00"
    assert complete("fedexp report ") == [sweep, f"{sweep}/0", f"{sweep}/1"]
    assert complete("fedexp report --") == [
        *("--columns", "--grid", "--help", "--interval", "--json", "--out", "--percent", "--wide")
    ]
    assert complete("fedexp report x --out out") == ["outputs/"]
