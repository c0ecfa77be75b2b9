"""Who may import whom: imports go down the list of layers; groups of parts know each other by their contracts."""

import ast
from functools import cache
from pathlib import Path

import fedexp
from fedexp.commands.arguments.parsing import COMMANDS

PACKAGE = Path(fedexp.__file__).parent
# fmt: off
LAYERS = (
    "core", "files", "process",
    "maths", "data", "config", "parts", "training", "scoring", "simulation",  # a run in memory
    "report", "run", "sweep", "plan", "verify", "compare", "search", "contest", "replay", "new",  # rooms of commands
    "export", "predict",
    "commands", "api", "cli", "__main__",
)
# fmt: on
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}


@cache
def imports(path: Path) -> list[str]:
    """The modules of fedexp that a file imports; lazy imports and those under TYPE_CHECKING count too."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        inside = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        full = (f"{inside}{name}" for name in names)
        found += [name if name in MODULES else name.rpartition(".")[0] for name in full if name.startswith("fedexp")]
    return found


def layer(module: str) -> int:
    """Where a module stands in the list; the package itself shows what `api` offers to scripts."""
    return LAYERS.index("api" if module == "fedexp" else module.split(".")[1])


def group(module: str) -> str:
    """The config group of a module of `parts`; none for what all groups share."""
    return ".".join(module.split(".")[2:-1])


def test_imports_only_go_down():
    for module, path in MODULES.items():
        up = [target for target in imports(path) if layer(target) > layer(module)]
        assert not up, f"{module} imports {up}"


def test_groups_of_parts_know_each_other_by_contract_only():
    for module, path in MODULES.items():
        if not module.startswith("fedexp.parts."):
            continue
        others = [target for target in imports(path) if target.startswith("fedexp.parts.")]
        foreign = [target for target in others if group(target) not in (group(module), "")]
        assert not [target for target in foreign if not target.endswith(".contract")], module


def test_no_module_leads_back_to_itself():
    ahead = {module: set(imports(path)) - {module} for module, path in MODULES.items()}
    while leaves := [module for module, targets in ahead.items() if not targets & ahead.keys()]:
        for module in leaves:
            del ahead[module]
    assert not ahead, "circles among " + ", ".join(ahead)


def room(module: str) -> str:
    """A folder inside a layer, or a file that lies in none."""
    return ".".join(module.split(".")[:3])


def test_rooms_of_a_layer_import_each_other_one_way():
    ahead: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        same_layer = {room(target) for target in imports(path) if layer(target) == layer(module)}
        ahead.setdefault(room(module), set()).update(same_layer - {room(module)})
    while leaves := [name for name, targets in ahead.items() if not targets & ahead.keys()]:
        for name in leaves:
            del ahead[name]
    assert not ahead, "circles among " + ", ".join(ahead)


def test_no_folder_but_those_of_options_and_commands_is_crowded():
    for folder in {path.parent for path in PACKAGE.rglob("*.py")}:
        count = len([path for path in folder.glob("*.py") if path.name != "__init__.py"])
        assert count <= 15 or folder.parent == PACKAGE / "parts" or folder == PACKAGE / "commands", (
            f"{folder} has {count} files"
        )


def test_the_round_names_no_part():
    known = {name for name in imports(PACKAGE / "simulation" / "round.py") if name.startswith("fedexp.parts.")}
    assert known == {"fedexp.parts.context"}  # which options a role has, nobody says here


def test_the_round_fits_on_one_screen():
    tree = ast.parse((PACKAGE / "simulation" / "round.py").read_text())
    run_round = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run_round")
    assert run_round.end_lineno is not None
    assert run_round.end_lineno - run_round.lineno < 30
    assert not [node for node in ast.walk(run_round) if isinstance(node, ast.If | ast.IfExp)]


def test_no_branch_on_clustering_in_the_rounds():
    branches = (ast.If, ast.IfExp, ast.While, ast.Match, ast.comprehension)
    for name in ("round", "rounds", "context", "world", "personal_columns", "measures/own_models"):
        for node in ast.walk(ast.parse((PACKAGE / "simulation" / f"{name}.py").read_text())):
            tests = node.ifs if isinstance(node, ast.comprehension) else [getattr(node, "test", node)]
            if isinstance(node, branches):
                assert not [test for test in tests if "cluster" in ast.unparse(test)], f"{name}:{node}"


def test_no_clustering_is_named_outside_its_room():
    public = {"__init__", "contract", "predictions", "agreement"}
    names = {path.stem for path in (PACKAGE / "parts" / "clustering").glob("*.py")} - public
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name != "clustering":
            assert not {name.split(".")[-1] for name in imports(path) if ".clustering." in name} & names, path


def test_metrics_are_pure():
    assert not list(imports(PACKAGE / "maths" / "curve_metrics.py"))


def test_no_file_has_outgrown_a_page():
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 250, path


def test_no_function_has_outgrown_a_screen():
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    for module, path in MODULES.items():
        found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]
        long = [node.name for node in found if (node.end_lineno or 0) - node.lineno >= 40]
        assert not long, f"{module}: {long}"


def test_a_part_may_ask_seventeen_questions():
    tree = ast.parse((PACKAGE / "parts" / "context.py").read_text())
    context = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Context")
    assert len([node for node in context.body if isinstance(node, ast.FunctionDef)]) <= 17


def test_a_word_of_the_command_line_is_a_room_and_a_file_of_commands():
    for word in COMMANDS:
        assert f"fedexp.commands.{word}" in MODULES
        assert f"fedexp.{word}" in MODULES or word in ("resume", "list", "data", "completion")


def test_no_two_classes_share_a_name():
    trees = {module: ast.parse(path.read_text()) for module, path in MODULES.items()}
    names = [node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert {name for name in names if names.count(name) > 1} == {"Adam"}  # of clients and of the server: both are Adam
