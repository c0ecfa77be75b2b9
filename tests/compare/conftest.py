from collections.abc import Callable

import pytest
from run_folders import make_run, method

from fedexp.report.read import runs

__all__ = ["make_run", "method"]


@pytest.fixture
def read() -> Callable[..., list[runs.Run]]:
    """The runs below folders."""
    return lambda *folders: runs.collect_runs(folders)[0]
