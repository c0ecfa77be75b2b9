"""Names say what they name: no empty words for values, no bare participle for a function."""

import ast
from collections.abc import Iterator
from pathlib import Path

import fedexp

PACKAGE = Path(fedexp.__file__).parent
EMPTY = """
asked both came due each fresh given gone held kept known left made mine more one ones other others own place places
plain rest said seen taken there told found way ways what who whole whose yours
"""
PARTICIPLES = """
agreed begun believed broken built called changed chosen closed counted cut drawn found given held judged kept known
laid lent loaded made marked measured met moved named noted offered opened paired planned prepared put ranked
read_from refused renewed restored said sent shared_out shown spoken staffed taken told worn written
"""
STORED = {  # names of columns and keys that are written to disk
    "replay/results.py": {"asked"},
    "parts/tracker/memo.py": {"place"},
    "plan/plan.py": {"known"},
}


def values(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that a module assigns, of variables, fields, attributes and arguments, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno


def functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The names of functions and methods, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno


def is_bare_participle(name: str) -> bool:
    """Whether a function is called by a participle alone; `is_closed` and `named_rows` are names."""
    bare = name.strip("_")
    return bare in PARTICIPLES.split() or ("_" not in bare and bare.endswith("ed") and len(bare) > 4)


def test_names_say_what_they_name():
    faults: list[str] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        tree, file = ast.parse(path.read_text()), path.relative_to(PACKAGE).as_posix()
        empty = {*EMPTY.split()} - STORED.get(file, set())
        faults += [f"{file}:{line} {name}" for name, line in values(tree) if name.strip("_") in empty]
        faults += [f"{file}:{line} {name}()" for name, line in functions(tree) if is_bare_participle(name)]
    assert not faults


def test_what_is_no_name_is_seen():
    tree = ast.parse("def told(place):\n    self._held = [one for one in place]")
    assert [name for name, _ in values(tree)] == ["place", "_held", "one"]
    assert [name for name, _ in functions(tree) if is_bare_participle(name)] == ["told"]
    assert not is_bare_participle("is_closed")
    assert is_bare_participle("_rounded")
