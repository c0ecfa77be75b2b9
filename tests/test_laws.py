"""The page of laws shows what the tests hold; a marker that says nothing true of `conf/` is refused."""

from pathlib import Path

import pytest
from composing import options

from scripts import laws

ABOVE = "import pytest\n\n\n@pytest.mark.law({})\ndef test_it():\n    assert True\n"
METHODS = """
algorithm: fedprox fedbn ca2fl
aggregator: fedavg
local: prox scaffold feddyn feddecorr fedplus moon fedlc fedntd fedrs personal_layer fedrep fedbabu ditto apfl
local: fedrod pfedme fedfomo fedala fedem
clustering: ifca cfl
selector: s_fedavg greedyfed ucb afl power_of_choice oort
privacy: dp_sgd client_central client_local
"""
WHOLE = ("aggregator", "pacing", "pre_aggregation", "schedule", "server_optimizer")  # groups with laws of every option


def collected(folder: Path, marker: str) -> list[laws.Law]:
    """The laws of a folder with one test that has this marker."""
    (folder / "tests").mkdir()
    (folder / "tests" / "test_0.py").write_text(ABOVE.format(marker))
    return laws.collect_laws(folder / "tests")


def test_the_page_shows_what_the_tests_hold():
    assert laws.main(["--check"]) == 0


def test_every_method_has_laws():
    found = laws.collect_laws(laws.TESTS)
    assert len(found) >= 60
    assert len(found) == len(set(found))
    shown = {(law.group, law.option) for law in found}
    rows = [line.partition(": ") for line in METHODS.strip().splitlines()]
    wanted = {(group, option) for group, _, names in rows for option in names.split()}
    wanted |= {(group, option) for group in WHOLE for option in options(group) if option not in ("none", "constant")}
    assert sorted(wanted - shown) == []


def test_a_law_by_hand(tmp_path: Path):
    """One of an option, one of a whole group, and one of a class's test; what is no test is not looked at."""
    folder = tmp_path / "tests" / "parts"
    folder.mkdir(parents=True)
    marker = '    @pytest.mark.law("aggregator", "b")\n'
    text = ABOVE.format('"local=prox", "mu = 0 is FedAvg"') + f"\n\nclass TestAll:\n{marker}    def test_b(self): ...\n"
    (folder / "test_some.py").write_text(text)
    found = laws.collect_laws(tmp_path / "tests")
    assert found == [
        laws.Law("aggregator", "", "b", "tests/parts/test_some.py::TestAll::test_b"),
        laws.Law("local", "prox", "mu = 0 is FedAvg", "tests/parts/test_some.py::test_it"),
    ]
    text = laws.page(found)
    assert "Each of these 2 laws" in text
    assert "## local\n\nHow a client trains in its turn.\n\n### local=prox\n\n* mu = 0 is FedAvg:\n  `tests/" in text
    assert text.index("## local") < text.index("### every option of aggregator")


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ('"local=fedpax", "it is SGD"', r"^tests/test_0\.py:4 names local=fedpax, which conf/ does not hold; it must"),
        ('"locals", "it is SGD"', r"^tests/test_0\.py:4 names locals, which conf/ does not hold"),
        ('"local=", "it is SGD"', r"^tests/test_0\.py:4 names local=, which conf/ does not hold"),
        ('"local=sgd"', r'^tests/test_0\.py:4 must be @pytest\.mark\.law\("GROUP=OPTION", "the law in one line"\)'),
        ('"local=sgd", ""', r"^tests/test_0\.py:4 must be"),
        ('option="local=sgd", law="it is SGD"', r"^tests/test_0\.py:4 must be"),
        ('"local=sgd", str(1)', r"^tests/test_0\.py:4 must be"),
    ],
)
def test_other_markers_are_refused(tmp_path: Path, marker: str, said: str):
    with pytest.raises(SystemExit, match=said):
        collected(tmp_path, marker)


@pytest.mark.parametrize(
    "text",
    [
        "@pytest.mark.law('local=sgd', 'it is SGD')\ndef helper(): ...\n",
        "@pytest.mark.law('local=sgd', 'it is SGD')\nclass TestAll:\n    def test_b(self): ...\n",
        "pytestmark = pytest.mark.law('local=sgd', 'it is SGD')\n",
        "@pytest.mark.law\ndef test_b(): ...\n",
    ],
)
def test_a_marker_that_is_above_no_test_is_refused(tmp_path: Path, text: str):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(f"import pytest\n\n{text}")
    with pytest.raises(SystemExit, match=r"^tests/test_some\.py:3 must be @pytest\.mark\.law"):
        laws.collect_laws(tmp_path / "tests")


def test_a_page_that_is_out_of_date_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    collected(tmp_path, '"local=sgd", "it is SGD"')
    monkeypatch.setattr(laws, "TESTS", tmp_path / "tests")
    before = laws.PAGE.read_bytes()
    assert laws.main(["--check"]) == 1
    assert capsys.readouterr().out == "docs/laws.md does not show what tests/ holds; run python scripts/laws.py\n"
    assert laws.PAGE.read_bytes() == before
