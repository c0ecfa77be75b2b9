"""Every public function that takes or gives tensors or arrays states a shape; the source is read, not imported.

A shape is written `[C, D]`, or in words: a scalar, any shape. A method without a docstring is covered by that of the
class that it overrides; a method that overrides a documented one may say what it wants.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "fedexp"
ARRAYS = re.compile(r"\b(Tensor|ndarray)\b")
SHAPE = re.compile(r"\[(?=[^\]]*[A-Za-z])[\w*.+/()^, -]+\]|any shape|\ba scalar\b")
LEFT: dict[str, tuple[str, ...]] = {}


@dataclass(frozen=True)
class Function:
    """A function or method, where it is and what it says."""

    file: str
    owner: str | None
    name: str
    text: str | None
    arrays: bool

    @property
    def stated(self) -> bool:
        return self.text is not None and SHAPE.search(self.text) is not None


def functions(path: Path, source: str) -> Iterator[Function]:
    for node in ast.parse(source).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        owner = node.name if isinstance(node, ast.ClassDef) else None
        for one in members:
            if isinstance(one, ast.FunctionDef):
                places = [*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs, one.args.vararg, one.args.kwarg]
                notes = [place.annotation for place in places if place] + [one.returns]
                arrays = any(ARRAYS.search(ast.unparse(note)) for note in notes if note)
                yield Function(path.as_posix(), owner, one.name, ast.get_docstring(one), arrays)


def bases(source: str) -> Iterator[tuple[str, list[str]]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            yield node.name, [ast.unparse(base).split(".")[-1].split("[")[0] for base in node.bases]


def unstated(files: dict[Path, str]) -> dict[str, list[str]]:
    """The public functions without a shape, by file."""
    every = [one for path, source in files.items() for one in functions(path, source)]
    parents = {name: above for source in files.values() for name, above in bases(source)}
    documented = {(one.owner, one.name) for one in every if one.text}

    def overrides(owner: str | None, name: str) -> bool:
        above = parents.get(owner or "", [])
        return any((parent, name) in documented or overrides(parent, name) for parent in above)

    found: dict[str, list[str]] = {}
    for one in every:
        public = not one.name.startswith("_") and not (one.owner or "").startswith("_")
        if public and one.arrays and not one.stated and not overrides(one.owner, one.name):
            found.setdefault(one.file, []).append(f"{one.owner}.{one.name}" if one.owner else one.name)
    return found


def test_every_public_function_states_a_shape():
    files = {path.relative_to(PACKAGE): path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    assert unstated(files) == {file: list(names) for file, names in LEFT.items()}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('def f(x: Tensor):\n    """Doubles."""', ["f"]),
        ("def f(x: Tensor): ...", ["f"]),
        ('def f(x: list[np.ndarray] | None):\n    """Doubles."""', ["f"]),
        ('def f() -> "torch.Tensor":\n    """Row [i] of a table."""', []),
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
    ],
)
def test_what_counts(source: str, expected: list[str]):
    assert unstated({Path("a.py"): source}) == ({"a.py": expected} if expected else {})
