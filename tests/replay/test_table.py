from pathlib import Path
from textwrap import dedent

import pytest

from fedexp.core.errors import ConfigError
from fedexp.replay import catalog, table
from fedexp.replay.published import Published

TEXT = """\
source: somebody 2020
about: accuracy on digits
measure: test_accuracy
seeds: 3
overrides: [dataset=digits]
cells:
  - name: a
    overrides: [rounds=2]
    published: {value: 0.9, where: table 1}
    others: [{by: another, value: 0.7, spread: 0.05, runs: 3}]
  - name: b, later
    overrides: [rounds=3]
    measure: roa@0.5
    published: {value: 2}
    seeds: 1
    minutes: 0.5
    explained: a
    number: rounds to a half
"""


def read(tmp_path: Path, text: str) -> table.PublishedTable:
    path = tmp_path / "mine.yml"
    path.write_text(text)
    return table.load(str(path))


def test_a_table_is_read(tmp_path: Path):
    found = read(tmp_path, TEXT)
    assert (found.name, found.source, [cell.name for cell in found.cells]) == (
        "mine",
        "somebody 2020",
        ["a", "b, later"],
    )
    a, b = found.cells
    assert a.words(2) == ["dataset=digits", "rounds=2", "seed=2"]
    assert (a.seeds, b.seeds, a.minutes, b.minutes) == (3, 1, None, 0.5)
    assert (a.measure.text, b.measure.text) == ("test_accuracy", "roa@0.5")
    assert a.published == Published(0.9, where="table 1")
    assert a.replications == (("another", Published(0.7, 0.05, 3)),)
    assert (b.explained, b.published_number, a.published_number) == ("a", "rounds to a half", "a")
    assert b.folder == "b_later"
    assert a.fingerprint != b.fingerprint


def test_several_numbers_of_one_run_are_cells(tmp_path: Path):
    more = """\
  - name: c
    overrides: [rounds=4]
    seeds: 2
    numbers:
      - {name: accuracy, published: {value: 0.9}}
      - {name: loss, measure: test_loss, note: of the test data}
"""
    *_, accuracy, loss = read(tmp_path, TEXT + more).cells
    assert (accuracy.name, loss.name, loss.note) == ("c, accuracy", "c, loss", "of the test data")
    assert accuracy.overrides == loss.overrides
    assert accuracy.run == loss.run
    assert accuracy.fingerprint != loss.fingerprint
    assert (accuracy.published, loss.published) == (Published(0.9), None)
    assert (accuracy.seeds, loss.seeds, loss.measure.text) == (2, 2, "test_loss")
    for wrong in ("numbers: 3", "numbers: [3]", "numbers: [{measure: test_loss}]"):
        with pytest.raises(ConfigError, match="cell 3: numbers must be a list of numbers, each with a name, got"):
            read(tmp_path, TEXT + f"  - {{name: c, overrides: [rounds=4], {wrong}}}\n")
    with pytest.raises(ConfigError, match="cell 3: name must be given; those of its numbers come after it"):
        read(tmp_path, TEXT + more.replace("name: c\n    overrides", "overrides"))
    for key, value in (("published", "{value: 1}"), ("others", "[]")):
        with pytest.raises(ConfigError, match=f"cell 3: {key} must stand with the number that it is about"):
            read(tmp_path, TEXT + more.replace("    numbers", f"    {key}: {value}\n    numbers"))
    with pytest.raises(ConfigError, match="cell 3: unknown key measured"):
        read(tmp_path, TEXT + more.replace("measure: test_loss", "measured: test_loss"))


def test_a_cell_that_asks_for_something_else_has_another_name_for_it(tmp_path: Path):
    before = read(tmp_path, TEXT).cells[0].fingerprint
    assert read(tmp_path, TEXT.replace("seeds: 3", "seeds: 9")).cells[0].fingerprint == before
    assert read(tmp_path, TEXT.replace("rounds=2", "rounds=4")).cells[0].fingerprint != before
    assert read(tmp_path, TEXT.replace("measure: test_accuracy", "measure: test_loss")).cells[0].fingerprint != before


ODD = ("+hydra.run.dir=x", "++hydra.job.chdir=true", "hydra/launcher=joblib", "~dataset=digits", "+seed=1", "~seed=1")
ODD += ("selector@hydra=random", "=3", "' seed=1'", "'seed =1'")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("source: somebody 2020\n", "", "source must be given"),
        ("rounds=2", "seed=2", "words such as selector=random, without a seed, got 'seed=2'"),
        ("rounds=2", "rounds", "words such as selector=random, without a seed, got 'rounds'"),
        ("rounds=2", "hydra.run.dir=/", "without a seed, got 'hydra.run.dir=/'"),
        ("where: table 1", "spread: 0.05", "must have spread and runs (at least 2) together, or neither for a single"),
        ("where: table 1", "runs: 3", "must have spread and runs (at least 2) together, or neither for a single"),
        ("where: table 1", "runs: 0", "published: runs must be at least 1, got 0"),
        ("where: table 1", "value_: 1", "unknown key value_; did you mean value?"),
        ("where: table 1", "where: 3", "published: where must be"),
        ("where: table 1", "spread: 1, runs: 2, beyond: true", "beyond must stand with a single number"),
        ("where: table 1", "spread: 1, runs: 2, examples: 9", "examples must stand with an accuracy"),
        ("0.9, where: table 1", "90, examples: 9", "examples must stand with an accuracy"),
        ("where: table 1", "examples: 0", "examples must be at least 1"),
        ("explained: a", "explained: c", "explained of b, later must name a cell of the table"),
        ("by: another, ", "", "must say by whom they are"),
        ("b, later", "a", "two cells are called a"),
        ("name: a", "name: ../a", "name must be up to 80 letters"),
        *(
            (
                "roa@0.5",
                wrong,
                f"must be roa@X with an accuracy X above 0 and up to 1, or a column of metrics.csv such as "
                f"test_accuracy, test_accuracy last 5, test_accuracy at 2 or test_accuracy max, got {wrong}",
            )
            for wrong in (
                "roa@5",
                "roa@0",
                "roa@0.9.7",
                "roa@.",
                "roa@",
                "roa@nan",
                "test_loss last 0",
                "test_loss last 5 runs",
                "test_loss at 0",
            )
        ),
        ("seeds: 3", "seeds: 0", "seeds must be at least 1, got 0"),
        ("seeds: 3", "seeds: many", "seeds must be"),
        ("about:", "abut:", "about must be given"),
        *(("rounds=2", word, "overrides must be words such as selector=random, without a seed, got") for word in ODD),
        ("value: 0.9", "value: .inf", "published: value must be finite, got inf"),
        ("value: 0.9", "value: 1" + 400 * "0", "published: value must be finite, got 1000"),
        ("where: table 1", "spread: -0.1, runs: 3", "published: spread must be at least 0, got -0.1"),
        ("where: table 1", "spread: .inf, runs: 3", "published: spread must be finite, got inf"),
        ("where: table 1", "rounding: -1", "published: rounding must be at least 0, got -1"),
        ("value: 0.7", "value: -.inf", "others: value must be finite, got -inf"),
        ("{value: 2}", "{value: -2}", "published: value must be above 0 where rounds are counted, got -2"),
        ("minutes: 0.5", "minutes: -1", "minutes must be at least 0, got -1"),
        ("minutes: 0.5", "minutes: .inf", "minutes must be finite, got inf"),
        ("seeds: 3", "seeds: 1000000000", "seeds must be at most 10,000, got 1000000000"),
        *(
            ("name: a", f"name: {name}", "name must be up to 80 letters")
            for name in (".", "..", ".a", 80 * "\U00020000")
        ),
    ],
)
def test_what_is_wrong_is_told_in_one_line(tmp_path: Path, old: str, new: str, told: str):
    assert old in TEXT
    with pytest.raises(ConfigError) as error:
        read(tmp_path, TEXT.replace(old, new, 1))
    assert told in str(error.value)
    assert "mine.yml" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", [".yml", "..yml", "...yml"])
def test_a_table_has_a_name_of_which_a_folder_can_be_made(tmp_path: Path, name: str):
    (tmp_path / name).write_text(TEXT)
    with pytest.raises(ConfigError, match=r"a table must have a name before \.yml that does not begin with a dot"):
        table.load(str(tmp_path / name))


def test_a_word_may_add_a_key(tmp_path: Path):
    words = ["+seeds=1", "++hydrants.x=a=b", "model/norm-x=1"]
    text = TEXT.replace("[rounds=2]", f"{words}")
    assert read(tmp_path, text).cells[0].overrides == ("dataset=digits", *words)


def test_an_unknown_table_is_told():
    with pytest.raises(ConfigError, match="unknown table fedavg_2017; did you mean fedavg_2017_"):
        table.load("fedavg_2017")
    with pytest.raises(ConfigError, match=r"there is no file none\.yml"):
        table.load("none.yml")


def test_the_name_of_a_file_is_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yml").write_text(TEXT)
    with pytest.raises(ConfigError, match=r"unknown table mine; for the file beside you give mine\.yml"):
        table.load("mine")


@pytest.mark.parametrize("name", catalog.names())
def test_the_tables_of_the_package_can_be_read(name: str):
    assert table.load(name).cells


def test_the_table_of_the_guide_can_be_read(tmp_path: Path):
    page = (Path(__file__).parents[2] / "docs" / "compare.md").read_text()
    text = page.partition("A table of your own:\n\n")[2]
    found = read(tmp_path, dedent(text))
    assert [cell.name for cell in found.cells] == ["FedAvg", "median"]
