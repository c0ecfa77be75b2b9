"""Installs public programs, runs them whole on the laws of laws.yml and writes where they ended.

python scripts/laws/run.py            all of programs.yml, each in an environment of its own under outputs/laws
python scripts/laws/run.py FedLab     one of them; the others keep their lines

results.csv gets a line for each run: what the program printed at its end, or its last words where it failed.
`python scripts/laws.py` shows them on docs/laws.md.
"""

import csv
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from scripts.laws import read_programs  # noqa: E402

ENVIRONMENTS = ROOT / "outputs" / "laws"
RESULTS = HERE / "results.csv"
COLUMNS = ("program", "version", "law", "file", "date", "x", "y", "error")
LONGEST_S = 1800


def install(name: str, program: Mapping[str, Any]) -> tuple[Path, list[str], str]:
    """An environment for a program: its python, what its driver wants before the method, and the version.

    What was installed before is used again.
    """
    if "packages" not in program:
        return Path(sys.executable), [], version(name)
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "-q", *program["packages"]], check=True)
    if "repository" not in program:
        return python, [], program["packages"][0].partition("==")[2]
    source = folder / "source"
    if not source.exists():
        clone = ["git", "clone", "-q", "--filter=blob:none", "--no-checkout", program["repository"], source]
        subprocess.run(clone, check=True)
        subprocess.run(["git", "-C", source, "sparse-checkout", "set", *program["folders"]], check=True)
    subprocess.run(["git", "-C", source, "checkout", "-q", program["commit"]], check=True)
    return python, [str(source)], program["commit"][:8]


def run(python: Path, driver: str, words: Sequence[str]) -> tuple[str, str, str]:
    """Where a run ended, x and y, or the last words of one that failed, in a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        inside = Path(folder, "system")
        inside.mkdir()
        command = [str(python), str(HERE / driver), *words]
        try:
            done = subprocess.run(command, cwd=inside, capture_output=True, text=True, timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            return "", "", f"stopped after {LONGEST_S} s"
    if done.returncode:
        return "", "", [f"exit code {done.returncode}", *done.stderr.strip().splitlines()][-1]
    x, y = json.loads(done.stdout.strip().splitlines()[-1])["ends_at"]
    return f"{x:.7g}", f"{y:.7g}", ""


def rows(name: str, program: Mapping[str, Any], tries: Mapping[str, Any]) -> list[dict[str, str]]:
    """A line for each law of which the program has the method."""
    python, first, release = install(name, program)
    lines = []
    for law, how in tries.items():
        method = how["method"]
        if method in program["files"]:
            end = run(python, program["driver"], [*first, method, *(str(how[k]) for k in ("steps", "rounds", "rate"))])
            cells = (name, release, law, program["files"][method], f"{datetime.now(UTC):%Y-%m-%d}", *end)
            print(*cells, sep=", ", flush=True)
            lines.append(dict(zip(COLUMNS, cells, strict=True)))
    return lines


def main(names: Sequence[str]) -> int:
    """Runs the programs and writes their lines after those of others."""
    tries, programs, earlier = read_programs(HERE)
    if unknown := set(names) - set(programs):
        sys.exit(f"unknown program {', '.join(sorted(unknown))}; there are {', '.join(programs)}")
    lines = {name: [line for line in earlier if line["program"] == name] for name in programs}
    for name in names or programs:
        lines[name] = rows(name, programs[name], tries)
        with RESULTS.open("w", newline="") as file:
            writer: csv.DictWriter[str] = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(chain.from_iterable(lines.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
