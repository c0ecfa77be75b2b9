"""Settings of logging that cannot be obeyed are one line, before a folder is made or after it is given back."""

import gc
from pathlib import Path

import pytest
from command_line import complaint

from fedexp import cli
from fedexp.config.hydra_errors import explain_logging_errors

WORDS = ("experiment=smoke", "engine=loop", "engine.workers=1", "pictures=false")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("value", ["3", "1.5", "null", "[]", "[3]"])
@pytest.mark.parametrize("mode", [(), ("-m", "seed=0,1")])
def test_verbosity_is_a_truth_or_names(value: str, mode: tuple[str, ...], capsys: pytest.CaptureFixture[str]):
    assert cli.main(["run", *WORDS, *mode, f"hydra.verbose={value}"]) == 2
    assert complaint(capsys).startswith("fedexp: hydra.verbose must be true, false, the name of a logger or a list of ")
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python leaves half of it open
@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("hydra.job_logging.root=3", "'int' object has no attribute 'get'"),
        ("hydra.hydra_logging.root.level=LOUD", "Unknown level: 'LOUD'"),
        ("hydra.job_logging.handlers=3", "'int' object is not iterable"),
        ("hydra.job_logging.root.handlers=[nobody]", "Unable to add handler 'nobody'"),
    ],
)
def test_what_logging_says_is_told(word: str, why: str, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["run", *WORDS, word]) == 2
    assert complaint(capsys) == (
        "fedexp: logging cannot be set up as hydra.hydra_logging and hydra.job_logging say: "
        f"{why}; leave them as they are"
    )
    assert not list(Path.cwd().rglob("metrics.csv"))
    gc.collect()


def test_other_errors_stay_what_they_are():
    with pytest.raises(ValueError, match="mine"), explain_logging_errors():
        raise ValueError("mine")
