"""The command as a process of its own: from anywhere, into a pipe, interrupted."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import python

from fedexp import cli
from fedexp.config.location import conf_dir


def test_the_installed_layout_finds_its_configs_from_anywhere(here):
    package = Path(cli.__file__).parent
    shutil.copytree(package, here / "site" / "fedexp", ignore=shutil.ignore_patterns("__pycache__", "conf"))
    shutil.copytree(conf_dir(), here / "site" / "fedexp" / "conf")
    environment = {**os.environ, "PYTHONPATH": str(here / "site")}
    asked = (
        "from fedexp.cli import main; from fedexp.config.location import conf_dir; print(conf_dir()); main(['list'])"
    )
    done = python("-c", asked, cwd=here, env=environment)
    assert done.stdout.startswith(str(here / "site" / "fedexp" / "conf"))
    assert "selector" in done.stdout


def test_as_a_module_a_typo_ends_with_code_2(here):
    done = python("-m", "fedexp.cli", "run", "selector.cout=3", cwd=here)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fedexp: unknown key selector.cout; did you mean selector.count?\n"
    assert list(here.iterdir()) == []


def test_a_reader_that_leaves_is_no_error():
    done = subprocess.run(
        f"{sys.executable} -m fedexp.cli run --help | true",
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk is full here")
@pytest.mark.parametrize("words", ["--help", "list --json"])
def test_no_room_on_stdout_is_said(words):
    command = f"{sys.executable} -m fedexp.cli {words} > /dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr == "fedexp: No space left on device: stdout\n"


def test_control_c_in_a_real_run(here):
    words = ["run", "rounds=100000", "checkpoint_s=0", "engine=loop", "hydra.run.dir=mine"]
    process = subprocess.Popen(
        [sys.executable, "-m", "fedexp.cli", *words],
        cwd=here,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_control_c,
    )
    try:
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline and not (here / "mine" / "state.pt").exists():
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert said == "fedexp: interrupted; continue with: fedexp resume mine\n"
    assert process.returncode == 130


def heed_control_c():
    """A shell's background job, and so all tests in it, ignores Ctrl-C; the child must not inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
