import pytest

from fedexp.core.errors import ConfigError


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


@pytest.fixture
def real(real_data):
    """The data root, where it holds the dataset's published files; skips the test elsewhere."""

    def root(dataset):
        try:
            dataset.require(real_data)
        except ConfigError as error:
            pytest.skip(f"published files not at hand: {str(error)[:80]}")
        return real_data

    return root
