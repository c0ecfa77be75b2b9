"""Who may import whom: roles do not know each other, the round knows no part, nothing reads upstream."""

import ast
from pathlib import Path

import fedexp

PACKAGE = Path(fedexp.__file__).parent


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return {name for name in found if name.split(".")[0] == "fedexp"}


def test_the_round_names_no_part():
    assert [name for name in imports(PACKAGE / "simulation" / "round.py") if ".parts." in name] == []


def test_the_round_fits_on_one_screen():
    tree = ast.parse((PACKAGE / "simulation" / "round.py").read_text())
    run_round = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run_round")
    assert run_round.end_lineno is not None
    assert run_round.end_lineno - run_round.lineno < 30
    assert not [node for node in ast.walk(run_round) if isinstance(node, ast.If | ast.IfExp)]


def test_no_branch_on_clustering_in_the_rounds():
    branches = (ast.If, ast.IfExp, ast.While, ast.Match, ast.comprehension)
    for name in ("round", "rounds", "context", "world", "kept_columns", "measures/own_models"):
        for node in ast.walk(ast.parse((PACKAGE / "simulation" / f"{name}.py").read_text())):
            tests = node.ifs if isinstance(node, ast.comprehension) else [getattr(node, "test", node)]
            if isinstance(node, branches):
                assert not [test for test in tests if "cluster" in ast.unparse(test)], f"{name}:{node}"


def test_no_clustering_is_named_outside_its_room():
    names = {path.stem for path in (PACKAGE / "parts" / "clustering").glob("*.py")} - {
        "__init__",
        "contract",
        "predictions",
    }
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name != "clustering":
            assert not {name.split(".")[-1] for name in imports(path) if ".clustering." in name} & names, path


def test_metrics_are_pure():
    assert imports(PACKAGE / "maths" / "metrics.py") == set()


def test_no_file_has_outgrown_a_page():
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 250, path
