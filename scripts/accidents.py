"""Lets twelve accidents happen to a tiny run, resumes it, and compares what it leaves with a run that had none.

    python scripts/accidents.py
    python scripts/accidents.py --only "disk full" "folder gone"

Prints a table: the accident, what the run said of it, its exit code, and whether it ended with the same tables and
models once it was resumed (timings apart). An accident that this machine does not allow to happen (mounts need root) is
skipped, and the table says so. Exit code 1 if a run said more than one line, or another than it should, or did not end
with the same results.
"""

import argparse
import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fedexp import cli  # noqa: E402
from fedexp.core.values import Weights  # noqa: E402
from fedexp.parts.tracker import courier, sender  # noqa: E402
from fedexp.simulation import local_task  # noqa: E402
from fedexp.simulation import round as simulation_round  # noqa: E402
from fedexp.training.workers import heartbeat, pool  # noqa: E402
from scripts import kills  # noqa: E402
from scripts.forked import Copy, outcome, put, warm_up  # noqa: E402
from scripts.kills import go_on  # noqa: E402

MIDDLE = 3  # the round after which most accidents happen
PATIENCE_S = 90.0
NEW_MOUNTS = 0x00020000  # of `unshare`: mounts that no other process sees
TRACKER = {"_target_": "fedexp.parts.tracker.tensorboard.TensorBoard", "patience_s": 1.0}
SENT = ("tracker.json", ".tracker.lock", "tensorboard")  # what a tracker leaves, which the other run has not

Ended = tuple[int | None, list[str]]  # the exit code (None: not within `PATIENCE_S`), and what was said


@dataclass(frozen=True)
class Accident:
    """What happens to the run in the folder `run` of a place, and what the run must say and end with."""

    name: str
    happen: Callable[[Path], Ended]
    said: str  # a regular expression
    code: int
    within: Callable[[Path], AbstractContextManager[object]] = nullcontext  # what the place is, until it is compared
    changed: dict[str, dict[str, Any]] | None = None  # keys of the run
    hindrance: Callable[[], str] = lambda: ""  # why it cannot happen here


def after_round(number: int, act: Callable[[], object]) -> None:
    """Does something as soon as a round of this process's run is recorded."""
    kills.after_each_round(lambda done: act() if done == number else None)


def going_on(prepare: Callable[[], object], place: Path) -> Ended:
    """How a run ends for which this has been prepared in its process."""

    def act() -> int:
        prepare()
        return go_on()

    return outcome(place, act, PATIENCE_S)


def disk_full(place: Path) -> Ended:
    ended = outcome(place, go_on, PATIENCE_S)
    mount("-o", "remount,size=64m", place)
    return ended


def read_only(place: Path) -> Ended:
    going_on(lambda: after_round(MIDDLE, lambda: os.kill(os.getpid(), signal.SIGKILL)), place)
    mount("-o", "remount,ro", place)
    with tempfile.TemporaryDirectory() as beside:
        ended = outcome(Path(beside), lambda: cli.main(["resume", str(place / "run")]), PATIENCE_S)
    mount("-o", "remount,rw", place)
    return ended


def folder_gone(place: Path) -> Ended:
    ended = going_on(lambda: after_round(MIDDLE, lambda: Path("run").rename("elsewhere")), place)
    if (place / "run").exists():
        return ended[0], [*ended[1], "a new folder was made"]
    (place / "elsewhere").rename(place / "run")
    return ended


def clock_back(place: Path) -> Ended:
    now = time.time
    return going_on(lambda: after_round(MIDDLE, lambda: put(time, "time", lambda: now() - 86400.0)), place)


def few_files(place: Path) -> Ended:
    """A few more than are open already may be opened, which is too few for a group of workers."""

    def limit() -> None:
        few = len([*Path("/dev/fd").iterdir()]) + 12
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))

    return going_on(limit, place)


def little_memory(place: Path) -> Ended:
    def greedy() -> None:
        train = local_task.train_rows
        put(local_task, "train_rows", lambda *given: (torch.zeros(2**40), train(*given))[1])

    return going_on(lambda: after_round(MIDDLE, greedy), place)


def frozen_worker(place: Path) -> Ended:
    """It is named after a while; then a person ends the run."""
    log, silence = place / "run" / "fedexp.log", f"has not answered for {round(heartbeat.PATIENCE * pool.LOOK_S)} s"

    def act() -> int:
        forked: list[int] = []
        fork = os.fork
        put(os, "fork", lambda: forked.append(fork()) or forked[-1])
        after_round(MIDDLE, lambda: os.kill(forked[-1], signal.SIGSTOP))
        return go_on()

    copy, deadline = Copy(place, act), time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and not (log.exists() and silence in log.read_text()):
        time.sleep(0.05)
    os.kill(copy.pid, signal.SIGTERM)
    code = copy.end(PATIENCE_S)
    return code, [*warned(place), *copy.said()]


def closed_streams(place: Path) -> Ended:
    def close() -> None:
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            os.close(number)
            put(sys, name, None)

    return going_on(close, place)


def small_shm(place: Path) -> Ended:
    def shrink() -> None:
        if ctypes.CDLL(None).unshare(NEW_MOUNTS):
            raise OSError("mounts cannot be unshared")
        mount("--make-rprivate", Path("/"))
        mount("-t", "tmpfs", "-o", "size=4k", "tmpfs", Path("/dev/shm"))

    return going_on(shrink, place)


def hanging_tracker(place: Path) -> Ended:
    def hang() -> None:
        start = courier.subprocess.Popen
        asleep = [sys.executable, "-c", "import time; time.sleep(1e6)"]
        put(
            courier.subprocess,
            "Popen",
            lambda words, **more: start(asleep if sender.__name__ in words else words, **more),
        )

    code, said = going_on(hang, place)
    return code, [*warned(place), *said]


def not_finite(place: Path) -> Ended:
    """The model is not a number after round 5."""

    def spoil() -> None:
        play = simulation_round.fold

        def spoiled(exp: Any, models: Any, uploads: Any, mem: Any, ctx: Any, *rest: Any) -> Any:
            following, memories = play(exp, models, uploads, mem, ctx, *rest)
            if ctx.round == 5:
                following = tuple(Weights(model.flat * float("nan"), model.layout) for model in following)
            return following, memories

        put(simulation_round, "fold", spoiled)

    return going_on(spoil, place)


def two_at_once(place: Path) -> Ended:
    """The second one is refused, and the first goes on unharmed."""

    def wait() -> None:
        Path("waiting").touch()
        while not Path("go").exists():
            time.sleep(0.01)

    def act() -> int:
        after_round(MIDDLE, wait)
        return go_on()

    (place / "second").mkdir()
    first, deadline = Copy(place, act), time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and not (place / "waiting").exists():
        time.sleep(0.01)
    ended = outcome(place / "second", lambda: cli.main(["resume", "../run"]), PATIENCE_S)
    (place / "go").touch()
    code = first.end(PATIENCE_S)
    return ended if code == 0 else (code, [*ended[1], *first.said()])


def warned(place: Path) -> list[str]:
    """The warnings in the run's log."""
    return [
        line.partition("WARNING ")[2]
        for line in (place / "run" / "fedexp.log").read_text().splitlines()
        if "WARNING" in line
    ]


def mount(*words: str | Path) -> None:
    """Mounts, or raises OSError."""
    done = subprocess.run(["mount", *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(done.stderr.strip())


@contextmanager
def mounted(place: Path, size: str) -> Iterator[None]:
    """The place as a file system of its own, as small as this."""
    mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", place)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def no_mounts() -> str:
    """Why nothing can be mounted here; empty if it can."""
    with tempfile.TemporaryDirectory() as place:
        try:
            with mounted(Path(place), "64k"):
                return ""
        except OSError as error:
            return f"needs a mount: {error}"


def no_tracker() -> str:
    """Why there is no tracker here; empty if there is."""
    return "" if find_spec("tensorboard") else "needs tensorboard"


TWO = {"engine": {"workers": 2}}
GONE = "run was removed, renamed or replaced while it was in use; put it back and continue with: fedexp resume run"
FROZEN = (
    r"worker 1 \(process \d+\) has not answered for \d+ s; .*\nfedexp: interrupted; continue with: fedexp resume run"
)
NOTHING = ""
ACCIDENTS = (
    Accident(
        "disk full",
        disk_full,
        r"fedexp: No space left on device.*; .*(continue with: fedexp resume run|start again once that is fixed)",
        1,
        within=partial(mounted, size="72k"),
        hindrance=no_mounts,
    ),
    Accident(
        "read-only",
        read_only,
        r"fedexp: Read-only file system.*; the last saved state is whole, continue with: fedexp resume .*",
        1,
        within=partial(mounted, size="64m"),
        hindrance=no_mounts,
    ),
    Accident("folder gone", folder_gone, f"fedexp: {GONE}", 1),
    Accident("clock set back", clock_back, NOTHING, 0),
    Accident(
        "descriptors",
        few_files,
        r"fedexp: 2 workers need \d+ open files, but the system allows \d+; .*",
        2,
        changed=TWO,
    ),
    Accident("memory", little_memory, r"fedexp: not enough memory: .*; make the run smaller", 1),
    Accident("frozen worker", frozen_worker, FROZEN, 143, changed=TWO),
    Accident("closed streams", closed_streams, NOTHING, 0, changed=TWO),
    Accident("small /dev/shm", small_shm, NOTHING, 0, changed=TWO, hindrance=no_mounts),
    Accident(
        "a tracker that hangs",
        hanging_tracker,
        r"tensorboard: rounds 1 to 6 and the files did not arrive; fedexp resume run sends what is missing",
        0,
        changed={"tracker": TRACKER},
        hindrance=no_tracker,
    ),
    Accident("NaN in round 5", not_finite, r"fedexp: the global model is not finite after round 5; .*", 1),
    Accident("two runs in one folder", two_at_once, r"fedexp: \S*run is being run by process \d+ on .*", 2),
)


def tried(accident: Accident, known: kills.Whole, place: Path) -> tuple[list[str], bool]:
    """The line of the table about one accident, and whether everything was as it should be."""
    if why := accident.hindrance():
        return [accident.name, f"skipped: {why}", "", ""], True
    place.mkdir()
    with accident.within(place):
        kills.begin(known, place / "run")
        kills.change(place / "run", accident.changed or {})
        code, said = accident.happen(place)
        said = [line for line in said if not line.startswith("[W")]  # PyTorch has a log of its own
        again, more = outcome(place, go_on, PATIENCE_S)
        for name in SENT if accident.changed and "tracker" in accident.changed else ():
            left = place / "run" / name
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
        differences = kills.differences(known.folder, place / "run") if again == 0 else [f"ended with {again}", *more]
    told = "\n".join(said)
    right = re.fullmatch(accident.said, told) is not None and code == accident.code
    same = "; ".join(differences) or "yes"
    return [accident.name, " / ".join(said) or "nothing", str(code), same], right and not differences


def table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    head = ("accident", "what was said", "exit code", "resumed to the same bytes")
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows))


def main() -> int:
    """Lets them all happen, and tells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [accident.name for accident in ACCIDENTS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    asked = parser.parse_args()
    chosen = [accident for accident in ACCIDENTS if accident.name in asked.only]
    warm_up(kills.first)
    with tempfile.TemporaryDirectory() as place:
        known = kills.whole("local=sgd", Path(place) / "whole")
        results = [tried(accident, known, Path(place) / f"{number}") for number, accident in enumerate(chosen)]
    print(table([row for row, _ in results]))
    right, skipped = sum(good for _, good in results), sum("skipped" in row[1] for row, _ in results)
    print(f"{right - skipped} of {len(chosen)} as they should be" + (f", {skipped} skipped" if skipped else ""))
    return int(right < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
