"""N runs of a small network that differ in their seed: one after another, and with hydra/launcher=together.

Three ways of one after another are measured: commands, the points of `fedexp run -m`, and the rounds alone, in one
process that has built all of them before. Every line says how many times faster the same runs are together.

    python scripts/bench_together.py                        16 seeds of experiment=smoke
    python scripts/bench_together.py engine=stacked rounds=50 pictures=false
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

TOGETHER = "hydra/launcher=together"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("words", nargs="*", help="overrides of every run besides experiment=smoke")
    asked.add_argument("--runs", type=int, default=16)
    asked.add_argument("--jobs", type=int, default=1, help="processes that the runs together are shared out to")
    asked.add_argument("--no-commands", action="store_true", help="leave out what takes longest")
    given = asked.parse_args()
    words, runs = ["experiment=smoke", *given.words], given.runs
    alone, together = rounds_alone(words, runs), rounds_together(words, runs)
    print(f"{runs} runs  {' '.join(words)}  jobs={given.jobs} (rounds alone: 1)")
    print(f"{'':28}{'alone':>10}{'together':>10}{'times':>8}")
    told("rounds alone", alone, together)
    how = (TOGETHER, f"hydra.launcher.runs={runs}", f"hydra.launcher.jobs={given.jobs}")
    sweep = command("run", "-m", *words, f"seed=range({runs})", *how)
    told("points of fedexp run -m", command("run", "-m", *words, f"seed=range({runs})"), sweep)
    if not given.no_commands:
        told("commands", sum(command("run", *words, f"seed={seed}") for seed in range(runs)), sweep)


def told(name: str, alone: float, together: float) -> None:
    print(f"{name:28}{alone:9.2f}s{together:9.2f}s{alone / together:8.2f}", flush=True)


def command(*words: str) -> float:
    """Seconds of a command in a folder that is removed again."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        given = [sys.executable, "-m", "fedexp", *words]
        subprocess.run(given, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begun


def rounds_alone(words: Sequence[str], runs: int) -> float:
    """Seconds of the rounds of runs one after another."""
    from fedexp.simulation.company import ALONE
    from fedexp.simulation.rounds import exhaust

    worlds = [built(words, seed, ALONE) for seed in range(runs)]
    begun = time.perf_counter()
    for world in worlds:
        exhaust(world.exp, world, world.beginning())
    return time.perf_counter() - begun


def rounds_together(words: Sequence[str], runs: int) -> float:
    """Seconds of their rounds in step."""
    from fedexp.simulation.rounds import exhaust
    from fedexp.sweep.companions import Companion, Shared
    from fedexp.sweep.strands import Strand

    shared = Shared()

    def life(strand: Strand, seed: int) -> None:
        world = built(words, seed, Companion(shared, strand))
        strand.ask(None)
        exhaust(world.exp, world, world.beginning())

    strands = [Strand(lambda strand, seed=seed: life(strand, seed)) for seed in range(runs)]
    for strand in strands:
        strand.resume()
    begun = time.perf_counter()
    answers: Sequence = [None] * runs
    while strands:
        for strand, answer in zip(strands, answers, strict=True):
            strand.resume(answer)
            if strand.error is not None:
                raise strand.error
        strands = [strand for strand in strands if not strand.over]
        answers = shared.meeting.train([strand.asked for strand in strands])
    return time.perf_counter() - begun


def built(words: Sequence[str], seed: int, company):
    """The world of one run."""
    from hydra import compose, initialize_config_dir

    from fedexp.config.compose import plain
    from fedexp.config.location import conf_dir
    from fedexp.config.resolvers import register_resolvers
    from fedexp.core.part import build
    from fedexp.simulation.building import build_world
    from fedexp.training.workers import Crew

    register_resolvers()
    with initialize_config_dir(config_dir=str(conf_dir()), version_base="1.3"):
        config = compose("config", overrides=[*words, f"seed={seed}", "engine.workers=1"])
    exp = build(plain(config))
    return build_world(exp, None, Crew(), company)


if __name__ == "__main__":
    main()
