"""Who may import whom: roles do not know each other, the round knows no part, nothing reads upstream."""

import ast
from pathlib import Path

import fedexp

PACKAGE = Path(fedexp.__file__).parent
ROOMS = (
    "local",
    "models",
    "selectors",
    "aggregators",
    "attacks",
    "audits",
    "pre_aggregation",
    "server_optimizers",
    "fleets",
    "stops",
    "trackers",
    "federations",
    "features",
    "pretraining",
    "clusterings",
    "report",
    "shapley",
    "matching",
)
SHARED = {
    "fedexp.roles",
    "fedexp.values",
    "fedexp.spec",
    "fedexp.conf_dir",
    "fedexp.context",
    "fedexp.resources",
    "fedexp.optimizers",
    "fedexp.rows",
    "fedexp.tolerance",
    "fedexp.proximal",
    "fedexp.resolvers",
    "fedexp.streams",
    "fedexp.files",
    "fedexp.endings",
    "fedexp.metrics",
    "fedexp.data.dataset",
}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return {name for name in found if name.split(".")[0] == "fedexp"}


NEIGHBOURS = {
    "selectors": "fedexp.shapley.",
    "aggregators": "fedexp.matching.",
    "features": "fedexp.models.layers",
}  # rooms of pure functions


def test_rooms_know_only_their_own_and_what_is_shared():
    for room in ROOMS:
        for path in (PACKAGE / room).glob("*.py"):
            own = (f"fedexp.{room}", NEIGHBOURS.get(room, f"fedexp.{room}"))
            foreign = {name for name in imports(path) if not name.startswith(own)} - SHARED
            assert not foreign, f"{path.relative_to(PACKAGE)} imports {sorted(foreign)}"


def test_comparing_reads_what_reports_read_and_nothing_reads_it_but_its_command():
    shared = ("fedexp.compare", "fedexp.report", *SHARED)
    for path in (PACKAGE / "compare").glob("*.py"):
        assert not {name for name in imports(path) if not name.startswith(shared)}, path.name
    users = {path.stem for path in PACKAGE.rglob("*.py") if any(".compare" in name for name in imports(path))}
    assert users - {path.stem for path in (PACKAGE / "compare").glob("*.py")} == {"compare"}


def test_the_round_names_no_part():
    concrete = [name for name in imports(PACKAGE / "round.py") if name.split(".")[1] in ROOMS]
    assert concrete == []


def test_the_round_fits_on_one_screen():
    tree = ast.parse((PACKAGE / "round.py").read_text())
    run_round = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run_round")
    assert run_round.end_lineno is not None
    assert run_round.end_lineno - run_round.lineno < 30
    assert not [node for node in ast.walk(run_round) if isinstance(node, ast.If | ast.IfExp)]


def test_no_branch_on_clustering_in_the_rounds():
    branches = (ast.If, ast.IfExp, ast.While, ast.Match, ast.comprehension)
    for name in ("round.py", "execution.py", "context.py", "world.py", "kept.py", "personal.py"):
        for node in ast.walk(ast.parse((PACKAGE / name).read_text())):
            tests = node.ifs if isinstance(node, ast.comprehension) else [getattr(node, "test", node)]
            if isinstance(node, branches):
                assert not [test for test in tests if "cluster" in ast.unparse(test)], f"{name}:{node}"


def test_no_clustering_is_named_outside_its_room():
    names = {path.stem for path in (PACKAGE / "clusterings").glob("*.py")} - {"__init__", "clustering", "predictions"}
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name != "clusterings":
            assert not {name.split(".")[-1] for name in imports(path) if ".clusterings." in name} & names, path


def test_metrics_are_pure():
    assert imports(PACKAGE / "metrics.py") == set()


def test_no_file_has_outgrown_a_page():
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 250, path
