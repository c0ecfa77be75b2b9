"""What the README tells a reader to add works, typed as it stands."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(?:python|yaml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`((?:fedexp|conf|tests)/[\w/]+\.(?:py|yaml))`")


def typed(chapter: str) -> dict[str, str]:
    """The files of a chapter: each block of code belongs to the last file named before it."""
    text = (HOUSE / "README.md").read_text()
    text = text.partition(f"## {chapter}\n")[2].partition("\n## ")[0]
    files = {}
    for block in BLOCK.finditer(text):
        files[FILE.findall(text[: block.start()])[-1]] = block[1]
    return files


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the project that a reader may add to."""
    for name in ("fedexp", "conf", "tests"):
        shutil.copytree(HOUSE / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HOUSE / "pyproject.toml", tmp_path)
    return tmp_path


def python(house: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(house)}
    done = subprocess.run(
        [sys.executable, *words], cwd=house, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_selector_is_one_python_file_one_yaml_file_and_one_test(house: Path):
    files = typed("Add a selector")
    assert list(files) == [
        "fedexp/selectors/waiting.py",
        "conf/selector/waiting.yaml",
        "tests/selectors/test_waiting.py",
    ]
    for name, content in files.items():
        (house / name).write_text(content)
    own = python(house, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/selectors/test_waiting.py")
    assert "1 passed" in own
    contracts = python(house, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contracts", "-k", "waiting")
    assert int(contracts.partition(" passed")[0].split()[-1]) >= 5
    assert "waiting" in python(house, "-m", "fedexp.cli", "list", "selector")
    assert "final accuracy" in python(house, "-m", "fedexp.cli", "run", "selector=waiting", "rounds=2")
