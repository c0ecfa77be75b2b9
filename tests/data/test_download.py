import http.server
import threading
from pathlib import Path

import pytest

from fedexp.core.errors import ConfigError
from fedexp.data.download import fetch

BODY = bytes(range(256)) * 40_000  # more than one piece


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/absent":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY if self.path == "/whole" else BODY[: len(BODY) // 2])  # then the connection closes

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def accept(path: Path) -> None:
    if path.read_bytes() != BODY:
        raise ConfigError("it is another file")


def refuse(_: Path) -> None:
    raise ConfigError("nothing is right")


def test_whole_file_arrives(server, tmp_path, tree):
    fetch(f"{server}/whole", tmp_path / "deep" / "file", accept)
    assert (tmp_path / "deep" / "file").read_bytes() == BODY
    assert tree(tmp_path) == ["deep", "deep/file"]


@pytest.mark.parametrize(
    ("path", "check", "words"),
    [
        ("absent", accept, "404"),
        ("cut", accept, "the connection ended after 5,120,000 of 10,240,000 bytes"),
        ("whole", refuse, "nothing is right"),
    ],
)
def test_failure_leaves_nothing(server, tmp_path, tree, path, check, words):
    with pytest.raises(ConfigError, match=f"could not download file.*{words}"):
        fetch(f"{server}/{path}", tmp_path / "deep" / "file", check)
    assert tree(tmp_path) == []


def test_failure_keeps_the_old_file(server, tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(ConfigError):
        fetch(f"{server}/cut", tmp_path / "file", accept)
    assert (tmp_path / "file").read_bytes() == b"old"


def test_interruption_leaves_nothing(server, tmp_path, tree):
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(f"{server}/whole", tmp_path / "file", interrupt)
    assert tree(tmp_path) == []


def test_folder_that_cannot_be_written(server, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match="could not download"):
        fetch(f"{server}/whole", tmp_path / "file" / "deep" / "archive", accept)
