import os
from pathlib import Path

import pytest

from fedexp.spec import ConfigError

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _cache(monkeypatch, shared_cache):
    """No test reads or writes the user's cache; the real recordings are parsed once."""
    monkeypatch.setenv("FEDEXP_CACHE", str(shared_cache))


@pytest.fixture
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDEXP_CACHE", str(tmp_path / "own-cache"))
    return tmp_path / "own-cache"


@pytest.fixture(scope="session")
def real_root():
    return Path(os.environ.get("FEDEXP_DATA") or REPOSITORY.parent / "shared" / "data")


@pytest.fixture
def real(real_root):
    """The data root, where it holds the dataset's published files; skips the test elsewhere."""

    def root(dataset):
        try:
            dataset.require(real_root)
        except ConfigError as error:
            pytest.skip(f"published files not at hand: {str(error)[:80]}")
        return real_root

    return root


@pytest.fixture
def tree():
    """All files and folders below a folder."""
    return lambda folder: sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
