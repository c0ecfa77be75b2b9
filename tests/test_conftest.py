"""What the tests of the whole suite share."""

from pathlib import Path

from command_line import python


def test_a_run_of_tests_ends_without_words_of_triton():
    """torchvision brings Triton, which names every object of its own that is still there at the end."""
    tested = "tests/parts/model/test_torchvision.py"
    words = ("-q", "-n", "0", "-p", "no:cacheprovider", "-k", "test_weights_that_are_not_there", tested)
    ended = python("-m", "pytest", *words, cwd=Path(__file__).parent.parent)
    assert ended.returncode == 0, ended.stdout
    assert "leaked" not in ended.stdout + ended.stderr
