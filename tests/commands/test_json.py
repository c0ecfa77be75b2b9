"""`--json`: stdout is one document whose keys are those of docs/json.md; `-q` prints nothing."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from processes import typed

PAGE = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
TINY = (
    *("dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60", "scenario.clients=6", "rounds=2"),
    *("engine=loop", "engine.workers=1", "pictures=false"),
)


def stated(section: str) -> set[str]:
    """The keys that the page tells of a command."""
    text = re.split(rf"^## {re.escape(section)}$", PAGE, flags=re.MULTILINE)[1].partition("\n## ")[0]
    return set(re.findall(r"^`([^`]+)`$", text, re.MULTILINE))


def present(node: Any, keys: set[str], place: str = "") -> set[str]:
    """The keys of a document, as deep as the page goes."""
    if isinstance(node, list) and any(key.startswith(f"{place}[].") for key in keys):
        assert node, f"{place} is empty"
        found = [present(entry, keys, f"{place}[]") for entry in node]
        assert all(entry == found[0] for entry in found)
        return found[0]
    if isinstance(node, dict) and (not place or any(key.startswith(f"{place}.") for key in keys)):
        paths = {f"{place}.{name}".lstrip("."): value for name, value in node.items()}
        return {*paths, *(key for path, value in paths.items() for key in present(value, keys, path))}
    return set()


def document(folder: Path, *words: str, code: int = 0) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    done = typed(folder, *words, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout, parse_constant=refuse)


def demand_stated(found: dict[str, Any], section: str) -> None:
    assert present(found, stated(section)) == stated(section)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two sweeps of two seeds, the first of which says what it did."""
    folder = tmp_path_factory.mktemp("desk")
    for name, algorithm in (("a", "fedavg"), ("b", "fedprox")):
        words = ("run", "-m", *TINY, f"algorithm={algorithm}", "seed=0,1", f"hydra.sweep.dir={name}")
        found = document(folder, *words)
        demand_stated(found, "run -m")
        assert [(point["seed"], point["varied"]) for point in found["points"]] == [(0, {}), (1, {})]
        assert found["folder"] == str(folder / name)
    return folder


def test_a_run(tmp_path: Path):
    found = document(tmp_path, "run", *TINY, "hydra.run.dir=mine")
    demand_stated(found, "run")
    assert found["summary"] == json.loads((tmp_path / "mine/summary.json").read_text())
    done = typed(tmp_path, "run", *TINY, "--json", "hydra.run.dir=other")
    assert "final accuracy" in done.stderr


def test_a_resume_says_the_same_as_the_run(tmp_path: Path, desk: Path):
    found = document(tmp_path, "run", *TINY, "hydra.run.dir=mine")
    assert document(tmp_path, "resume", "mine") == found
    demand_stated(document(desk, "resume", "a"), "run -m")
    (tmp_path / "search").mkdir()
    (tmp_path / "search/search.yaml").touch()
    refused = typed(tmp_path, "resume", "search", "--json")
    assert refused.stderr.startswith("fedexp: --json is for runs and sweeps, and search is a search")


def test_an_error_is_a_document_too(tmp_path: Path):
    done = typed(tmp_path, "run", "selector.cout=3", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout) == {"error": "unknown key selector.cout; did you mean selector.count?"}
    assert done.stderr == "fedexp: unknown key selector.cout; did you mean selector.count?\n"
    refused = typed(tmp_path, "run", "--cfg", "job", "--json")
    assert refused.stderr == "fedexp: --json is for runs; leave it out with --cfg or --info\n"


def test_points_that_failed_stand_among_the_others(tmp_path: Path):
    words = ("-m", *TINY, "server_optimizer=momentum", "server_optimizer.lr=1,1e39", "hydra.sweep.dir=many")
    found = document(tmp_path, "run", *words, code=1)
    assert found.pop("error").startswith("1 of 2 points failed: many/1; the first: ")
    demand_stated(found, "run -m")
    fine, wrong = found["points"]
    assert fine["error"] is None
    assert wrong["error"].startswith("the global model is not finite"), wrong["error"]
    again = document(tmp_path, "resume", "many", code=1)
    assert again["points"] == found["points"]


def test_points_that_end_without_a_model_stay_failed(tmp_path: Path):
    words = ("-m", *TINY, "local.batch_size=2", "local.lr=0.1,1e20", "hydra.sweep.dir=many", "--fail-if", "rounds < 5")
    found = document(tmp_path, "run", *words, code=1)
    assert [point["error"] is None for point in found["points"]] == [True, False]
    assert set(found["points"][1]["numbers"].values()) == {None}
    assert len(found["failed"]) == 2
    assert "many/0" in found["failed"][0]
    again = document(tmp_path, "resume", "many", code=1)
    assert again["error"].startswith("1 of 2 points failed: many/1; the first: no update of any round was finite")
    assert again["points"] == found["points"]


def test_a_quiet_run_and_its_resume_print_nothing(tmp_path: Path):
    assert typed(tmp_path, "run", "-q", *TINY, "hydra.run.dir=mine").stderr == ""
    for words in (("run", "--quiet", *TINY), ("run", "-q", "-m", *TINY, "seed=0,1"), ("resume", "mine", "-q")):
        done = typed(tmp_path, *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "final accuracy" in (tmp_path / "mine/fedexp.log").read_text()
    wrong = typed(tmp_path, "run", "-q", "seed=-1")
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)


def test_compare(desk: Path):
    words = ("compare", "a", "--against", "b", "--fail-if", "test_accuracy <= 1")
    found = document(desk, *words, code=1)
    demand_stated(found, "compare")
    assert len(found["method_pairs"][0]["pairs"]) == 2
    assert len(found["failed"]) == 1


def test_report(desk: Path):
    found = document(desk, "report", "a", "b", "--out", "page.html")
    demand_stated(found, "report")
    accuracies = [json.loads((desk / f"a/{seed}/summary.json").read_text())["final_accuracy"] for seed in (0, 1)]
    row = found["tables"][0]["rows"][0]
    assert row["final accuracy mean"] == pytest.approx(sum(accuracies) / 2)
    assert row["final accuracy count"] == 2


def test_verify(desk: Path):
    found = document(desk, "verify", "a/0", "--seed", "3")
    demand_stated(found, "verify")
    assert (found["seed"], found["complaints"], found["exact"]) == (3, [], True)
    table = desk / "b/0/clients.csv"
    table.write_text(table.read_text().replace("\n1,", "\n2,", 1))
    damaged = document(desk, "verify", "b/0", "--seed", "3", code=1)
    assert damaged["complaints"]
    assert not damaged["exact"]


def test_list(tmp_path: Path):
    groups = document(tmp_path, "list")
    demand_stated(groups, "list")
    selector = next(entry for entry in groups["groups"] if entry["group"] == "selector")
    assert selector["default"] == "random"
    assert "greedyfed" in selector["options"]
    demand_stated(document(tmp_path, "list", "selector"), "list GROUP")
    demand_stated(document(tmp_path, "list", "scenario"), "list SECTION")
    option = document(tmp_path, "list", "local", "adam")
    demand_stated(option, "list GROUP OPTION")
    assert {"key": "local.lr", "value": 0.001} in [{"key": e["key"], "value": e["value"]} for e in option["keys"]]


def test_search(tmp_path: Path):
    found = document(tmp_path, "search", *TINY, "local.lr=interval(0.01,0.1)", "--trials", "2", "--out", "found")
    demand_stated(found, "search")
    values = [trial["value"] for trial in found["trials"]]
    assert found["best"][0]["value"] == max(values)
    assert found["best"][0]["overrides"] == [
        f"local.lr={found['trials'][found['best'][0]['trial']]['params']['local.lr']}"
    ]


def test_replay(tmp_path: Path):
    tables = document(tmp_path, "replay")
    demand_stated(tables, "replay")
    name = tables["tables"][0]["table"]
    cells = document(tmp_path, "replay", name, "--seeds", "0")
    demand_stated(cells, "replay NAME")
    assert cells["cells"][0]["values"] == []
