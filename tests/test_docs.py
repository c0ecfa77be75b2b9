"""The pages of the documentation: commands and snippets typed, numbers as told."""

import contextlib
import io
import re
import shlex
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from pages import GUIDE, HOUSE, PAGES, commands, name

from fedexp import cli, run

TYPED = (
    "README.md",
    "index.md",
    "concepts.md",
    "coming_from.md",
    "options.md",
    "compare.md",
    "plans.md",
    "compatibility.md",
    "notebooks.md",
)
SNIPPET = re.compile(r"^```python\n((?:(?!```).*\n)*)```\n(?:\n((?:    .*\n)+))?", re.MULTILINE)
NUMBER = re.compile(r"-?\d+\.\d+")
HEAVY = ("-m", "dataset=", "experiment=", "tracker=", "algorithm=", "fleet=")  # composed by test_readme, not run
REFUSED = ("selector.cout=3", "selector=fedcs")  # shown for their answers


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a reader works in, where something was run already."""
    folder = tmp_path_factory.mktemp("desk")
    with contextlib.chdir(folder):
        assert cli.main(["run", "rounds=1", "pictures=false"]) == 0
    return folder


@pytest.fixture(scope="module")
def typed() -> set[str]:
    """The commands typed so far: pages repeat each other's."""
    return set()


@pytest.mark.parametrize("page", [page for page in PAGES if page.name in TYPED], ids=name)
def test_what_is_cheap_to_type_works(page: Path, desk: Path, typed: set[str], capsys: pytest.CaptureFixture[str]):
    with contextlib.chdir(desk):
        fresh = [command for command in commands(page) if command not in typed]
        typed.update(fresh)
        for _, first, *rest in map(shlex.split, fresh):
            if first == "run" and "--cfg" not in rest and not any(word.startswith(HEAVY) for word in rest):
                code = cli.main([first, *rest, "rounds=1", "pictures=false"])
                assert code == (2 if set(REFUSED) & set(rest) else 0), rest
            elif first in ("list", "completion", "new") or "--cfg" in rest:
                assert cli.main([first, *rest]) == 0, rest
            elif first in ("report", "compare", "verify", "resume"):  # the folders of a page may not be there
                capsys.readouterr()  # the answers to words that are refused above
                assert cli.main([first, *rest]) in (0, 2), rest
                assert not re.search("unknown|unrecognized|no such option", capsys.readouterr().err, re.IGNORECASE)


@pytest.mark.parametrize("page", [page for page in PAGES if page != GUIDE], ids=name)
def test_snippets_print_what_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for code, told in SNIPPET.findall(page.read_text()):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code.replace("run(", "run('pictures=false', "), {})  # drawing takes longer than these runs
        said = "".join(f"{line.removeprefix('    ')}\n" for line in told.splitlines())
        if said:
            assert NUMBER.sub("#", out.getvalue()) == NUMBER.sub("#", said)
            assert _numbers(out.getvalue()) == pytest.approx(_numbers(said), abs=0.02)


def test_the_numbers_of_the_concepts(tmp_path: Path):
    page = (HOUSE / "docs" / "concepts.md").read_text()
    told = re.search(r"^    (round  participants.*\n(?:    .*\n)+)", page, re.MULTILINE)
    assert told
    table = pd.read_csv(io.StringIO(told[1]), sep=r"\s+")
    done = run("rounds=3", "scenario.participants=3", "pictures=false", folder=tmp_path / "run", quiet=True)
    assert table[["participants", "examples", "mb_up"]].equals(done.metrics[["participants", "examples", "mb_up"]])
    assert table["test_accuracy"].tolist() == pytest.approx(done.metrics["test_accuracy"].tolist(), abs=0.02)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_can_be_read_in_a_terminal(page: Path):
    assert [line for line in page.read_text().splitlines() if len(line) > 120] == []


def test_the_drawing_of_the_layers_shows_all_of_them():
    drawn = re.findall(r'text-anchor="middle">(.*?)</text>', (HOUSE / "docs" / "layers.svg").read_text())
    package = [path for path in (HOUSE / "fedexp").iterdir() if not path.name.startswith(("_", "."))]
    assert sorted(drawn) == sorted(path.stem for path in package if path.is_dir() or path.suffix == ".py")


def test_the_readme_is_short_and_names_no_file_that_an_index_lacks():
    text = (HOUSE / "README.md").read_text()
    prose = re.sub(r"<!-- verdicts -->.*<!-- /verdicts -->", "", text, flags=re.DOTALL)  # a line a source that was run
    assert len(prose.splitlines()) <= 90
    hook = tomllib.loads((HOUSE / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]
    for one in hook["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(one["pattern"], one["replacement"], text)
    assert re.findall(r"\]\((?!https?:|#)[^)]*\)", text) == []
    assert "Concepts (`docs/concepts.md`)" in text


def _numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


def test_no_page_holds_what_a_merge_left():
    root = Path(__file__).parents[1]
    pages = [root / "README.md", root / "CHANGELOG.md", *(root / "docs").rglob("*.md")]
    left = re.compile("^(<{7}|={7}|>{7})( |$)", re.MULTILINE)
    assert not [page.name for page in pages if left.search(page.read_text())]
