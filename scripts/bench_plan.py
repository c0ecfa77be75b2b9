"""What `fedexp plan` says against what `fedexp run` then takes: seconds, peak memory and megabytes, as ratios.

    python scripts/bench_plan.py                              # W1, W2, W3 of bench.py
    python scripts/bench_plan.py --workloads W2 --turns 3 --rounds 30 -- engine.workers=1

A plan and its run are commands of their own, from the start of the program to its end. The run's memory is the peak of
its first process and the peak of what its workers hold for themselves.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import WORKLOADS, overrides

from fedexp.plan.footprint import workers_mb

FEDEXP = (sys.executable, "-m", "fedexp.cli")


def planned(words: list[str]) -> dict[str, float]:
    """Seconds and megabytes as foretold."""
    done = subprocess.run([*FEDEXP, "plan", "--json", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the plan failed:\n{done.stderr}")
    told = json.loads(done.stdout)
    sent = told["sent"]
    return {"s": told["seconds"]["total"], "memory_mb": told["memory_mb"], "sent_mb": sent["mb_down"] + sent["mb_up"]}


def ran(words: list[str]) -> dict[str, float]:
    """The same as it came."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        command = [*FEDEXP, "run", *words, "hydra.run.dir=run"]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
        helpers = 0.0
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            helpers = max(helpers, workers_mb(process.pid))
            time.sleep(0.05)
        seconds = time.perf_counter() - begun
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit("the run failed")
        with Path(folder, "run", "metrics.csv").open() as table:
            sent = sum(float(line["mb_down"]) + float(line["mb_up"]) for line in csv.DictReader(table))
    return {"s": seconds, "memory_mb": used.ru_maxrss * 1024 / 1e6 + helpers, "sent_mb": sent}


def compare(name: str, words: list[str], turns: int) -> None:
    """Prints what was foretold, what came, and the median of their ratios."""
    pairs = [(planned(words), ran(words)) for _ in range(turns)]
    for quantity in ("s", "memory_mb", "sent_mb"):
        ratio = statistics.median(told[quantity] / came[quantity] for told, came in pairs)
        told, came = (statistics.median(pair[side][quantity] for pair in pairs) for side in (0, 1))
        print(f"{name}  {quantity:9}  plan {told:10.2f}  run {came:10.2f}  ratio {ratio:.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="W1,W2,W3")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=None, help="of each run, instead of the workload's own")
    parser.add_argument("words", nargs="*", help="further overrides")
    arguments = parser.parse_args()
    for name in arguments.workloads.split(","):
        words = [*overrides(WORKLOADS[name]), *arguments.words]
        if arguments.rounds is not None:
            words.append(f"rounds={arguments.rounds}")
        compare(name, words, arguments.turns)


if __name__ == "__main__":
    main()
