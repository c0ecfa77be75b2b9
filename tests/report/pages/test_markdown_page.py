"""The Markdown page: which pictures stand beside it, and when one is left out."""

import re
from pathlib import Path

import pytest

from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.section import Section
from fedexp.report.pages import markdown_page
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs
from fedexp.report.topics.tables import View

ALWAYS = {"learning", "learning_loss", "selections", "selections_by_rank", "selections_map", "seconds_host",
          "participants", "federation_1"}  # fmt: skip


@pytest.fixture
def pictures(tmp_path: Path):
    """The pictures of a page of all runs, in their order."""

    def drawn() -> list[str]:
        markdown_page.write(tmp_path / "out.md", group_runs(collect_runs([tmp_path])[0]), [], View())
        names = re.findall(r"\]\(out/(\w+)\.png\)", (tmp_path / "out.md").read_text())
        for ending in ("png", "pdf", "svg"):
            assert {f"{name}.{ending}" for name in names} == {
                path.name for path in (tmp_path / "out").glob(f"*.{ending}")
            }
        return names

    return drawn


def test_everything_is_drawn_where_everything_is_there(make_run, pictures, tmp_path):
    told = {
        "sim_s": [1.0, 2.0, 4.0, 8.0],
        "selector.method": "gtg",
        "selector.converged": [1, 0, 1, 1],
        "validation_accuracy": 0.5,
        "validation_loss": 1.0,
        "train_loss": 1.0,
        "train_s": 0.1,
        "privacy.epsilon_pld": [1, 2, 3, 4],
        "attack.malicious": [0, 1, 0, 2],
    }
    make_run("0", seed=0, metrics=told)
    make_run("1", seed=1, metrics=told)
    make_run("2", choices={"selector": "a$b_c$" * 40})
    more = {"validation", "validation_loss", "training_loss", "measure_1", "measure_2", "learning_time"}
    more |= {"seconds_simulated", "timeline", "stages", "convergence", "epsilon_spent", "epsilon"}
    drawn = pictures()
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == ALWAYS | more
    assert "Seeds 0, 1 of every method." in (tmp_path / "out.md").read_text()


def test_an_old_folder_shows_what_it_has(make_run, pictures):
    folder = make_run("0", metrics={"participants": ..., "host_s": ..., "sim_s": ..., "test_loss": ...}, finished=False)
    (folder / "clients.csv").unlink()
    (folder / "federation.csv").unlink()
    assert pictures() == ["learning"]


def test_a_run_without_any_evaluation_has_no_learning_curve(make_run, pictures):
    make_run("0", accuracy=(None, None), metrics={"test_loss": None})
    assert set(pictures()) == ALWAYS - {"learning", "learning_loss"}


HOSTILE = "<img src=x>[a](b)"


def test_a_label_is_no_markup_in_notes_titles_and_captions(make_run, tmp_path):
    for number, selector in enumerate((HOSTILE, "b")):
        folder = make_run(str(number), choices={"selector": selector})
        (folder / "federation.csv").write_text(f"client,examples,cat,dog\n0,{number + 1},1,2\n1,3,2,1\n")
    methods = group_runs(collect_runs([tmp_path])[0])
    markdown_page.write(tmp_path / "out.md", methods, [f"{HOSTILE}: `x/<1>` counts."], View())
    page = (tmp_path / "out.md").read_text()
    assert "* \\<img src=x>\\[a](b): `x/<1>` counts.\n" in page
    caption = Section(name="s", title=HOSTILE, note=HOSTILE, tables=[(f"of {HOSTILE}", Grid(("a",), [["1"]]))])
    markdown_page.compose(tmp_path / "two.md", "", [], [caption], {})
    for text in (page, (tmp_path / "two.md").read_text()):
        assert "src=x" in text
        assert not re.search(r"(?<!\\)<img|(?<!\\)\[a\]", text)


def test_a_command_can_be_copied():
    facts = [("Command", "fedexp run 'evaluation.metrics=[auroc,accuracy]'"), ("Data", "a [b]")]
    assert markdown_page._facts_list(facts) == (
        "* Command: `fedexp run 'evaluation.metrics=[auroc,accuracy]'`\n* Data: a \\[b]\n"
    )
    assert "`" not in markdown_page._fact_text("Command", "fedexp run name=`x`").replace("\\`", "")
