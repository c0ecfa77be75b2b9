"""Every public function that takes or gives tensors or arrays states a shape; the source is read, not imported.

A shape is written `[C, D]`, or in words: a scalar, any shape. A method that overrides a documented one is covered by
that docstring, as in the contracts of the parts; so is one without a docstring that a protocol documents.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "fedexp"
ARRAYS = re.compile(r"\b(Tensor|ndarray)\b")
SHAPE = re.compile(r"\[(?=[^\]]*[A-Za-z])[\w*.+/()^, -]+\]|any shape|\ba scalar\b")


class Function(NamedTuple):
    """A function or method, where it is and what it says; `arrays` if its annotations name tensors or arrays."""

    file: str
    owner: str
    name: str
    text: str
    arrays: bool


def functions(file: str, tree: ast.Module) -> Iterator[Function]:
    for node in tree.body:
        owner, members = (node.name, node.body) if isinstance(node, ast.ClassDef) else ("", [node])
        for one in members:
            if isinstance(one, ast.FunctionDef):
                places = [*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs, one.args.vararg, one.args.kwarg]
                notes = [place.annotation for place in places if place] + [one.returns]
                arrays = any(ARRAYS.search(word) for note in notes if note for word in words(note))
                yield Function(file, owner, one.name, ast.get_docstring(one) or "", arrays)


def words(note: ast.expr) -> Iterator[str]:
    """The names in an annotation, and quoted annotations."""
    for node in ast.walk(note):
        word = getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "value", None)
        if isinstance(word, str):
            yield word


def unstated(sources: dict[str, str]) -> dict[str, list[str]]:
    """The public functions without a shape, by file."""
    trees = {file: ast.parse(source) for file, source in sources.items() if "class " in source or ARRAYS.search(source)}
    every = [one for file, tree in trees.items() for one in functions(file, tree)]
    above: dict[str, set[str]] = {}
    for node in (node for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)):
        above.setdefault(node.name, set()).update(word for base in node.bases for word in words(base))
    documented = {(one.owner, one.name) for one in every if one.text}
    promised = {name for owner, name in documented if "Protocol" in above.get(owner, ())}

    def covered(owner: str, method: str) -> bool:
        """Whether a class above this one documents the method."""
        seen, todo = {owner}, list(above.get(owner, ()))
        while todo:
            name = todo.pop()
            if (name, method) in documented:
                return True
            todo += above.get(name, set()) - seen
            seen.add(name)
        return False

    found: dict[str, list[str]] = {}
    for one in every:
        public = not one.name.startswith("_") and not one.owner.startswith("_")
        kept = covered(one.owner, one.name) or (one.owner and not one.text and one.name in promised)
        if public and one.arrays and not SHAPE.search(one.text) and not kept:
            found.setdefault(one.file, []).append(f"{one.owner}.{one.name}".lstrip("."))
    return found


def test_every_public_function_states_a_shape():
    paths = sorted(PACKAGE.rglob("*.py"))
    assert unstated({path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in paths}) == {}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('def f(x: Tensor):\n    """Doubles."""', ["f"]),
        ("def f(x: Tensor): ...", ["f"]),
        ('def f(x: list[np.ndarray] | None):\n    """Doubles."""', ["f"]),
        ('def f() -> "torch.Tensor":\n    """Row `[n]` of a table."""', []),
        ('def f() -> "torch.Tensor":\n    """Row 1 of [0, 1]."""', ["f"]),
        ('def f(x: Tensor):\n    """Of `x [C, D]` the rows."""', []),
        ('def f(x: Tensor):\n    """Of `[..., P]`."""', []),
        ('def f(x: Tensor):\n    """Of a value (any shape)."""', []),
        ("def _f(x: Tensor): ...", []),
        ("def f(x: int): ...", []),
        ('class A:\n    def f(self, x: Tensor):\n        """Does."""', ["A.f"]),
        ("class _A:\n    def f(self, x: Tensor): ...", []),
        (
            'class A:\n    def f(self, x: Tensor):\n        """Of `[C]`."""\n'
            "class B(A): ...\nclass C(B):\n    def f(self, x: Tensor): ...",
            [],
        ),
        (
            'class A(Protocol):\n    def f(self, x: Tensor):\n        """Of `[C]`."""\n'
            "class B:\n    def f(self, x: Tensor): ...\n    def g(self, x: Tensor): ...",
            ["B.g"],
        ),
    ],
)
def test_what_counts(source: str, expected: list[str]):
    assert unstated({"a.py": source}) == ({"a.py": expected} if expected else {})
