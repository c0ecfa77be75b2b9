"""How much memory a run takes: resident pages, since tensors are no objects that Python counts."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import json, sys
from fedexp.core import part as spec
from fedexp.simulation.build_world import build_world
from fedexp.simulation.rounds import run_rounds
from fedexp.training.workers.pool import WorkerPool
from tests.composing import config

exp = spec.build(config(*sys.argv[1:]))
world, resident = build_world(exp, None, WorkerPool()), []
for _ in run_rounds(exp, world, world.initial_state()):
    with open("/proc/self/status") as status:
        pages = dict(line.split(":", 1) for line in status)
    resident.append([int(pages[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")])
print(json.dumps(resident))
"""
WORDS = (
    "dataset=synthetic",
    "dataset.shape=[256]",
    "dataset.train_size=2000",
    "scenario.clients=1000",
    "scenario.participants=1000",
    "local.epochs=1",
    "model=mlp",
    "model.hidden=[96]",  # 25,642 entries, so that 1,000 rows take 103 MB
    "engine=loop",
    "evaluation.every=5",
)


RETURNED_AT_ONCE = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}  # else as glibc likes


def megabytes(*words: str) -> list[list[float]]:
    command, environment = [sys.executable, "-c", SCRIPT, *WORDS, *words], os.environ | RETURNED_AT_ONCE
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_mean_of_1000_clients_holds_one_group_of_rows_and_nothing_stays_from_round_to_round():
    rounds, all_rows = megabytes("rounds=20"), megabytes("rounds=1", "aggregator=median")
    now, most = zip(*rounds, strict=True)
    assert min(now[14:]) - min(now[4:10]) < 10
    assert most[-1] - most[4] < 20
    assert all_rows[0][1] - most[0] > 50  # so rows can be seen


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_step_of_fedbuff_holds_its_uploads_twice_and_not_what_they_began_from():
    """400 rows take 41 MB: those that were sent, and those that their age has made smaller."""
    buffered = ("pacing=buffered", "pacing.clients=700", "pacing.buffer=400", "fleet=simulated", "fleet.link=own")
    now, most = megabytes("rounds=4", *buffered)[-1]
    assert most - now < 2.5 * 41
