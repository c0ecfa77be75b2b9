"""fedexp on a device that is not the CPU: what no GPU is needed for. See pretend_device/README.md."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ to build the pretend device with")
@pytest.mark.skipif(sys.platform != "linux", reason="the pretend device is built on Linux only")
def test_the_pretend_device():
    """In a process of its own, since the device stands for "cuda" in every module of fedexp."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pretend_device.plugin", "-p", "no:cacheprovider"]
    command += ["-W", "ignore:An output with one or more elements was resized"]  # by the fallback to the CPU
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path} | {"PYTEST_ADDOPTS": ""}
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_XDIST")}
    files = (str(HERE / f"{name}.py") for name in ("on_device", "on_streams", "on_mutations"))
    done = subprocess.run(
        [*command, "-n", "0", *files],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert "leaked" not in done.stdout + done.stderr, "Triton, which torchvision brings, names what is still there"
