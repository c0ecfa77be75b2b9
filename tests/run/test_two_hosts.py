"""One run on two hosts, as torchrun starts it: two network namespaces that only a cable of their own connects."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tracking
from kept import kept_bytes

from fedexp.cli import main

WORDS = (*tracking.FAST, "rounds=3", "scenario.participants=4")
ADDRESSES = ("10.213.7.1", "10.213.7.2")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


def connect(names: list[str]) -> None:
    """Makes the namespaces; each has one link, named like itself."""
    for name in names:
        ip("netns", "add", name)
    ip("link", "add", names[0], "netns", names[0], "type", "veth", "peer", "name", names[1], "netns", names[1])
    for name, address in zip(names, ADDRESSES, strict=True):
        ip("-n", name, "addr", "add", f"{address}/24", "dev", name)
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "link", "set", name, "up")


@pytest.fixture
def hosts() -> Iterator[list[str]]:
    """The names of two hosts."""
    names = [f"fedexp{side}{os.getpid() % 10**6}" for side in "ab"]
    try:
        connect(names)
        yield names
    except (OSError, subprocess.SubprocessError):
        pytest.skip("network namespaces need Linux, iproute2 and its permission")
    finally:
        for name in names:
            subprocess.run(["sh", "-c", f"ip netns del {name}"], check=False, capture_output=True, timeout=30)


def start(host: str, number: int, folder: Path) -> subprocess.Popen[str]:
    """This host's share of the run, in a folder of its own."""
    (folder / host).mkdir()
    meeting = {"MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": "29500", "GLOO_SOCKET_IFNAME": host}
    share = {"RANK": str(number), "LOCAL_RANK": "0", "WORLD_SIZE": str(len(ADDRESSES))}
    return subprocess.Popen(
        ["ip", "netns", "exec", host, sys.executable, "-m", "fedexp.cli", "run", *WORDS, "hydra.run.dir=run"],
        cwd=folder / host,
        env={**os.environ, **meeting, **share},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_hosts_measure_what_one_process_measures(hosts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    shares = [start(host, number, tmp_path) for number, host in enumerate(hosts)]
    for share in shares:
        _, error = share.communicate(timeout=120)
        assert share.returncode == 0, error
    assert main(["run", *WORDS, "hydra.run.dir=alone"]) == 0
    run = tmp_path / hosts[0] / "run"
    assert json.loads((run / "summary.json").read_text())["engine"]["workers"] == 2
    assert kept_bytes(run) == kept_bytes(tmp_path / "alone")
    assert list((tmp_path / hosts[1]).iterdir()) == []
