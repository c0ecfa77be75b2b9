"""The examples in docstrings give what stands below them."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "fedexp").rglob("*.py"))
    if ">>> " in path.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module(name: str):
    done = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert done.attempted
    assert not done.failed
