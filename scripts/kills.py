"""Kills tiny runs at random moments, resumes them, and compares what they leave with runs that nobody killed.

    python scripts/kills.py                  # 300 kills
    python scripts/kills.py --kills 30 --seed 1 --options selector=oort

The runs go through all selectors, aggregators, local rules, privacy, clusterings, pacings and laws of availability,
alone and with a worker; half of the others have clients come and go, too.
A kill falls inside a write of a table, a state or the summary; after a completed round; anywhere; or on the worker
alone, of which the first process must say so and end. Tables and summary (but timings) and models must then be equal,
byte by byte. Ends with `300 of 300 end with the same results`, else with exit code 1 and which did not.
"""

import argparse
import io
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fedexp import cli  # noqa: E402
from fedexp.run.logbook import Logbook  # noqa: E402
from fedexp.run.tables import GrowingCsv  # noqa: E402
from scripts.forked import Copy, outcome, put, warm_up  # noqa: E402
from scripts.fuzz.options import needed  # noqa: E402
from tests.kept import kept_bytes  # noqa: E402
from tests.test_every_option import OPTIONS  # noqa: E402

GROUPS = ("selector", "aggregator", "local", "privacy", "clustering", "pacing", "availability")
LAWS = [option for option in OPTIONS if option.startswith("availability=") and not option.endswith("=always")]
TRACE = "availability=trace"
WINDOWS = "client,from_s,to_s\n" + "".join(f"{client},{client},{client + 3}\n" for client in range(6))
CYCLE = ("write", "round", "any", "round", "worker")  # of 300 kills 60 fall on a worker alone
ROUNDS = 6
SAVED = {"checkpoint_s": 0, "keep_states": 2}
PATIENCE_S = 90.0  # within which every process must have ended
PASSING = {".lock", "fedexp.log"}
MEASURED = (
    "host_s",
    "toa",
    "engine",
    "git",
)  # of the summary: seconds, how many workers there were at the end, this checkout


@dataclass(frozen=True)
class Whole:
    """A run that nobody killed."""

    folder: Path
    seconds: float
    pace: float  # seconds of a round
    moments: int  # at which a file was half written


@dataclass(frozen=True)
class Kill:
    """What is killed, and when, as shares of what there is."""

    number: int
    option: str
    kind: str
    workers: int
    when: float
    delay: float

    def __str__(self) -> str:
        return f"kill {self.number} ({self.kind} at {self.when:.3f}, {self.option}, {self.workers} worker(s))"


class Doom:
    """Counts the moments at which a file is half written, and kills this process at one of them."""

    def __init__(self, at: int) -> None:
        self.at, self.passed = at, 0

    def here(self, half: Callable[[], object] = lambda: None) -> None:
        """One of them; `half` does the half of it."""
        if self.passed == self.at:
            half()
            os.kill(os.getpid(), signal.SIGKILL)
        self.passed += 1

    def lie_in_wait(self) -> None:
        """Puts itself into all writes of this process."""
        self._tables()
        self._states()
        write, rename, sync = Path.write_bytes, Path.replace, os.fsync

        def written(path: Path, content: Any) -> int:
            self.here(lambda: write(path, content[: len(content) // 2]))
            return write(path, content)

        def replaced(path: Path, target: Any) -> Path:
            self.here()
            done = rename(path, target)
            self.here()
            return done

        def synced(handle: int) -> None:
            self.here()
            sync(handle)

        for holder, name, done in ((Path, "write_bytes", written), (Path, "replace", replaced), (os, "fsync", synced)):
            put(holder, name, done)

    def _tables(self) -> None:
        append = GrowingCsv.append

        def appended(table: GrowingCsv, *given: Any) -> Any:
            if not isinstance(table.file, _Halved):
                table.file = _Halved(table.file, self)  # type: ignore[assignment]
            return append(table, *given)

        put(GrowingCsv, "append", appended)

    def _states(self) -> None:
        save = torch.save

        def saved(content: Any, file: Any) -> None:
            whole = io.BytesIO()
            save(content, whole)
            raw = whole.getvalue()
            self.here(lambda: (file.write(raw[: len(raw) // 2]), file.flush()))
            file.write(raw)

        put(torch, "save", saved)


class _Halved:
    """A file whose writes are such moments."""

    def __init__(self, file: Any, doom: Doom) -> None:
        self.file, self.doom = file, doom

    def write(self, content: Any) -> int:
        self.doom.here(lambda: self.file.write(content[: len(content) // 2]))
        return self.file.write(content)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def first() -> int:
    """Some run, for what it imports."""
    return cli.main(["run", *needed("privacy=dp_sgd"), "hydra.run.dir=run"])


def go_on() -> int:
    """Takes the run in the folder `run` to its end."""
    return cli.main(["resume", "run"])


def after_each_round(act: Callable[[int], object]) -> None:
    """Does something with the number of a round as soon as this process's run has recorded it."""
    record = Logbook.record

    def recorded(logbook: Logbook, state: Any, *given: Any) -> None:
        record(logbook, state, *given)
        act(state.round)

    put(Logbook, "record", recorded)


def whole(option: str, place: Path) -> Whole:
    """The run of an option, or of several with blanks between, begun from the command line."""
    place.mkdir()
    saved = tuple(f"{key}={value}" for key, value in SAVED.items())
    if TRACE in option.split():
        (place / "windows.csv").write_text(WINDOWS)
        saved += (f"availability.path={place.absolute()}/windows.csv", "availability.repeat_s=9")
    words = ("run", *needed(*option.split()), *saved, f"rounds={ROUNDS}", "hydra.run.dir=run")

    def act() -> int:
        doom = Doom(-1)
        doom.lie_in_wait()
        begun = time.perf_counter()
        code = cli.main(words)
        Path("told.json").write_text(json.dumps([time.perf_counter() - begun, doom.passed]))
        return code

    code, said = outcome(place, act, PATIENCE_S)
    if code:
        raise RuntimeError(f"fedexp {' '.join(words)} ended with {code}: {' / '.join(said)}")
    seconds, moments = json.loads((place / "told.json").read_text())
    pace = json.loads((place / "run" / "summary.json").read_text())["host_s"] / ROUNDS
    return Whole(place / "run", seconds, pace, moments)


def planned(kills: int, seed: int, options: Sequence[str]) -> list[Kill]:
    """Which kills there are: kinds and numbers of workers in turn, and all options in every possible order."""
    draw = np.random.default_rng(seed)
    options = [beside(option, np.random.default_rng([seed, number])) for number, option in enumerate(options)]
    plan, order = [], np.arange(len(options))
    for number in range(kills):
        kind = CYCLE[number % len(CYCLE)]
        workers = 2 if kind == "worker" or number // len(CYCLE) % 2 else 1
        if number % len(options) == 0:
            order = draw.permutation(len(options))
        option = options[int(order[number % len(options)])]
        plan.append(Kill(number, option, kind, workers, *draw.random(2).tolist()))
    return plan


def beside(option: str, draw: np.random.Generator) -> str:
    """An option with another one beside it: a pacing beside an availability, an availability beside half of others."""
    if option.startswith("availability="):
        return f"{draw.choice([pacing for pacing in OPTIONS if pacing.startswith('pacing=')])} {option}"
    return f"{option} {draw.choice(LAWS)}" if draw.random() < 0.5 else option


def killed(kill: Kill, known: Whole, folder: Path) -> str:
    """Begins a run in the folder `run` and kills it; what fell short already, else nothing."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        begin(known, folder / "run")
        change(folder / "run", {"engine": {"workers": kill.workers}})
        told = KINDS[kill.kind](kill, known, folder)
        if told is not None:
            return told
        kill = replace(kill, when=kill.when / 2, delay=kill.delay / 2)  # it was over before
    return "it was always over before it could be killed"


def begin(known: Whole, run: Path) -> None:
    """Makes a folder with the config of a run, and nothing else."""
    run.mkdir(parents=True)
    shutil.copyfile(known.folder / "config.json", run / "config.json")
    shutil.copytree(known.folder / ".hydra", run / ".hydra")


def change(run: Path, keys: dict[str, dict[str, Any]]) -> None:
    """Changes keys of groups in the config of a run."""
    path = run / "config.json"
    content = json.loads(path.read_text())
    for role, values in keys.items():
        content["config"][role] |= values
    path.write_text(json.dumps(content))


def _in_a_write(kill: Kill, known: Whole, folder: Path) -> str | None:
    def act() -> int:
        Doom(int(kill.when * known.moments)).lie_in_wait()
        return go_on()

    copy = Copy(folder, act)
    return _dead(copy, copy.wait(PATIENCE_S))


def _after_a_round(kill: Kill, known: Whole, folder: Path) -> str | None:
    read, write = os.pipe()

    def act() -> int:
        after_each_round(lambda _: os.write(write, b"."))
        return go_on()

    copy = Copy(folder, act)
    with _hearing(read, write):
        for _ in range(1 + int(kill.when * (ROUNDS - 1))):
            if not _heard(read, 1):
                break
    time.sleep(kill.delay * known.pace)
    return _dead(copy, copy.kill())


def _anywhere(kill: Kill, known: Whole, folder: Path) -> str | None:
    copy = Copy(folder, go_on)
    time.sleep(kill.when * known.seconds)
    return _dead(copy, copy.kill())


def _of_the_worker(kill: Kill, known: Whole, folder: Path) -> str | None:
    """The first half of these kills fall while the group forms."""
    read, write = os.pipe()

    def act() -> int:
        fork = os.fork

        def forked() -> int:
            pid = fork()
            if pid:
                os.write(write, f"{pid:10d}".encode())
            return pid

        put(os, "fork", forked)
        return go_on()

    copy = Copy(folder, act)
    with _hearing(read, write):
        worker = int(_heard(read, 10) or 0)
    time.sleep(0.1 * kill.when if kill.delay < 0.5 else kill.when * known.seconds)
    done, status = os.waitpid(copy.pid, os.WNOHANG)
    if done or not worker:
        return None if done and not status else f"ended with {status} before the kill: {' / '.join(copy.said())}"
    with suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)
    code, said = copy.end(PATIENCE_S), copy.said()
    if code is None:
        return f"the first process waited for more than {PATIENCE_S:g} s for a worker that was killed"
    ours = [line for line in said if line.startswith("fedexp: ")]  # gloo has a log of its own
    named = len(ours) == 1 and "worker 1 was killed by signal 9" in ours[0] and said[-1] == ours[0]
    if code == 0:
        return None
    return "" if code == 1 and named else f"ended with {code}: {' / '.join(said)}"


KINDS: dict[str, Callable[[Kill, Whole, Path], str | None]] = {
    "write": _in_a_write,
    "round": _after_a_round,
    "any": _anywhere,
    "worker": _of_the_worker,
}


@contextmanager
def _hearing(read: int, write: int) -> Iterator[None]:
    """Keeps the reading end of a pipe open meanwhile; the writing end is the copy's."""
    os.close(write)
    try:
        yield
    finally:
        os.close(read)


def _heard(read: int, size: int) -> bytes:
    """What comes next; nothing where the other end is closed or silent."""
    ready, _, _ = select.select([read], [], [], PATIENCE_S)
    return os.read(read, size) if ready else b""


def _dead(copy: Copy, code: int | None) -> str | None:
    with suppress(ProcessLookupError):  # its workers, if they are still about to end
        os.killpg(copy.pid, signal.SIGKILL)
    if code == -signal.SIGKILL:
        return ""
    return None if code == 0 else f"ended with {code} before the kill: {' / '.join(copy.said())}"


def fault(kill: Kill, known: Whole, folder: Path) -> tuple[str, bool]:
    """What fell short of a kill, if anything; and whether it came after a completed round."""
    told = killed(kill, known, folder)
    table = folder / "run" / "metrics.csv"
    late = table.exists() and table.read_bytes().count(b"\n") > 1
    if told:
        return told, late
    code, said = outcome(folder, go_on, PATIENCE_S)
    if code != 0:
        return f"resume ended with {code}: {' / '.join(said)}", late
    return "; ".join(differences(known.folder, folder / "run")), late


def differences(one: Path, other: Path) -> list[str]:
    """What two finished runs do not have in common, timings apart."""
    files = [
        {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()} - PASSING for run in (one, other)
    ]
    found = [f"only one has {name}" for name in sorted(files[0] ^ files[1])]
    if kept_bytes(one) != kept_bytes(other):
        found.append("metrics.csv differs")
    for name in sorted(name for name in files[0] & files[1] if name.endswith(".csv") and name != "metrics.csv"):
        if (one / name).read_bytes() != (other / name).read_bytes():
            found.append(f"{name} differs")
    if _facts(one) != _facts(other):
        found.append("summary.json differs")
    for name in sorted(name for name in files[0] & files[1] if name.endswith(".pt")):
        if _model(one / name) != _model(other / name):
            found.append(f"the models of {name} differ")
    return found


def _facts(run: Path) -> dict[str, Any]:
    told = json.loads((run / "summary.json").read_text())
    return {name: value for name, value in told.items() if name not in MEASURED}


def _model(path: Path) -> tuple[Any, ...]:
    state = torch.load(path, weights_only=True)
    models = [(flat.numpy().tobytes(), str(layout)) for flat, layout in state["models"]]
    return state["round"], state["updates"], state["sim_s"], models


def tried(kills: Sequence[Kill], place: Path, tell: Callable[[str], None]) -> tuple[int, int, int]:
    """Does them all: how many ended with other results, came after a completed round, fell inside a write."""
    known: dict[str, Whole] = {}
    short = late = inside = 0
    for kill in kills:
        if kill.option not in known:
            known[kill.option] = whole(kill.option, place / f"whole{len(known)}")
        told, after = fault(kill, known[kill.option], place / "killed")
        short, late, inside = short + bool(told), late + after, inside + (kill.kind == "write")
        if told:
            tell(f"{kill}: {told}")
    return short, late, inside


def main() -> int:
    """Tries them all and tells."""
    every = [option for option in OPTIONS if option.partition("=")[0] in GROUPS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--options", nargs="+", choices=every, default=every, metavar="GROUP=OPTION")
    asked = parser.parse_args()
    warm_up(first)
    with tempfile.TemporaryDirectory() as place:
        plan = planned(asked.kills, asked.seed, asked.options)
        short, late, inside = tried(plan, Path(place), lambda line: print(line, flush=True))
    alone = sum(kill.kind == "worker" for kill in plan)
    print(f"{late} came after a completed round, {inside} inside a write, {alone} on a worker alone")
    print(f"{asked.kills - short} of {asked.kills} end with the same results")
    return int(short > 0 or 2 * late < asked.kills or 6 * inside < asked.kills)


if __name__ == "__main__":
    sys.exit(main())
