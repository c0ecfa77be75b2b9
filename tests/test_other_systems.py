"""What Windows lacks is hidden: every module is imported, and a run with one worker is made, resumed and verified."""

import json
from pathlib import Path

import pandas as pd
import pytest
from command_line import python

OS = (
    "fork forkpty register_at_fork O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK WIFSIGNALED WTERMSIG fchmod "
    "geteuid getpgid getpgrp getuid killpg mkfifo sched_getaffinity set_blocking setpgid setsid statvfs sysconf uname"
)
SIGNAL = "SIGALRM SIGCHLD SIGHUP SIGPIPE SIGQUIT SIGUSR1 alarm setitimer"
MODULES = "fcntl grp pty pwd readline resource syslog termios tty"
# The packages that others wrote are imported first, as they find their own way on every system; so does Python's own
# `subprocess`, which needs WNOHANG and SIGKILL here.
WINDOWS = """
import errno, fcntl, importlib, os, pkgutil, shutil, signal, sys

for name in ("filelock", "hydra", "hydra._internal.core_plugins.basic_launcher", "joblib", "matplotlib.pyplot",
             "pandas", "sklearn.cluster", "torch.distributed", "tqdm"):
    importlib.import_module(name)
opened, synced, flags = os.open, os.fsync, fcntl.fcntl
shutil._use_fd_functions = False


def only_files(path, *words, **keys):
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    return opened(path, *words, **keys)


def only_written(handle):
    if flags(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    synced(handle)


def no_links(*_, **__):
    raise OSError("A required privilege is not held by the client")


os.open, os.fsync, os.symlink = only_files, only_written, no_links
for name in MODULES.split():
    sys.modules[name] = None
for name in OS.split():
    delattr(os, name)
for name in SIGNAL.split():
    delattr(signal, name)

import fedexp
for module in pkgutil.walk_packages(fedexp.__path__, "fedexp."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)

from fedexp import cli
from fedexp.plan.footprint import peak_mb

run = ["experiment=smoke", "engine.workers=1", "rounds=2", "hydra.run.dir=run"]
for words in (["run", *run], ["resume", "run"], ["verify", "run"]):
    assert cli.main(words) == 0, words
assert peak_mb() == 0.0
assert cli.main(["run", "engine.workers=2"]) == 2
assert cli.main(["run", "tracker=tensorboard"]) == 2
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder where the commands ran, and what they complained of."""
    folder = tmp_path_factory.mktemp("windows")
    done = python("-c", f"{OS=}; {SIGNAL=}; {MODULES=}\n{WINDOWS}", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stderr


def test_a_run_is_whole(made: tuple[Path, str]):
    folder, _ = made
    assert len(pd.read_csv(folder / "run" / "metrics.csv")) == 2
    assert json.loads((folder / "run" / "summary.json").read_text())["rounds"] == 2


def test_what_needs_more_is_refused(made: tuple[Path, str]):
    workers, tracker = made[1].splitlines()
    assert workers.startswith("fedexp: engine.workers must be 1 or auto where processes cannot fork, got 2; ")
    assert tracker.startswith("fedexp: tracker=tensorboard needs process groups, which Linux and macOS have; ")
