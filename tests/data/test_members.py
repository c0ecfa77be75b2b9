import os

import pytest

from fedexp.data.members import present


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_in_place_of_an_archive_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "HAPT.zip")
    assert present(tmp_path / "HAPT.zip", ["a"]) == set()
    assert present(tmp_path / "absent.zip", ["a"]) == set()
