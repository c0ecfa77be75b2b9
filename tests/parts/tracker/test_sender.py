"""The sender, as far as it is no process."""

from fedexp.parts.tracker.sender import without_password


def test_a_log_tells_no_password():
    assert without_password("no answer of http://me:secret@host:5000/api, said a@b") == (
        "no answer of http://host:5000/api, said a@b"
    )
