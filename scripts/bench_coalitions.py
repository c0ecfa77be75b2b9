"""Microseconds a coalition's model and image that exact Shapley values take, and what each trick brings.

    python scripts/bench_coalitions.py

Three ways in turns: the models one by one, many in one pass, and in one pass with the first layer's outputs mixed
instead of its weights (where it is linear). 5,000 validation images, all 2^M coalitions, one thread. Then SimpleCNN's
pass by how many models lie side by side and how many images a call has, as a Markdown table.
"""

import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import torch
from bench import WORKLOADS, in_turns, overrides, world_of

from fedexp.scoring.mixtures import MODELS_PER_PASS
from fedexp.scoring.side_by_side import mix_models
from fedexp.simulation import context
from fedexp.simulation.world import World

IMAGES, TURNS = 5000, 3
BESIDE, A_CALL = (8, 16, 32), (8, 16, 32, 64, 128)  # models side by side, images of a call
CASES = (("MLP 784-128-10", "W2", 3), ("MLP 784-128-10", "W2", 6), ("SimpleCNN", "W1", 6))


def world_with_validation(workload: str) -> World:
    world = world_of([*overrides(WORKLOADS[workload]), "engine=loop", "engine.workers=1", "dataset.train_size=1000"])
    return replace(world, validation=world.test.subset(np.arange(IMAGES)))


def ways(world: World, mix: np.ndarray, rows: torch.Tensor) -> dict[str, Callable[[], np.ndarray]]:
    """Each way to the losses of the models `mix @ rows`."""
    validation = world.validation
    assert validation is not None
    first, together = world.mixture_scorer.first_layer, world.mixture_scorer.models_per_pass

    def one_by_one() -> np.ndarray:
        models = mix_models(torch.from_numpy(mix), rows)
        return np.array([world.score(replace(world.first, flat=model), validation).loss for model in models])

    def in_one_pass(linear_first: bool) -> Callable[[], np.ndarray]:
        def losses() -> np.ndarray:
            world.mixture_scorer.first_layer = first if linear_first else None
            world.mixture_scorer.models_per_pass = together if linear_first else MODELS_PER_PASS
            if first:
                first.blocks.clear()  # what is measured begins with the first layer
            return context.make_context(world, 1).validation.mixture_losses(mix, rows)

        return losses

    found = {"one by one": one_by_one, "one pass": in_one_pass(linear_first=False)}
    if first:
        found["one pass, first layer mixed"] = in_one_pass(linear_first=True)
    return found


def stacking(world: World) -> None:
    """Prints microseconds a model and image, medians of turns, of every number of models and images."""
    scorer, rng = world.mixture_scorer, np.random.default_rng(0)
    images = world.test.subset(np.arange(1000))
    world = replace(world, validation=images)
    rows = world.first.flat + 0.05 * torch.randn(4, world.layout.size)
    mix = rng.dirichlet(np.ones(4), max(BESIDE))

    def score(models: int, call: int) -> None:
        scorer.models_per_pass, scorer.budget = models, call * scorer.floats * models
        context.make_context(world, 1).validation.mixture_losses(mix, rows)

    seconds = in_turns({case: partial(score, *case) for case in product(BESIDE, A_CALL)}, TURNS + 1)
    print("\n| models | " + " | ".join(f"{call} images" for call in A_CALL) + " |")
    print("|---|" + "---:|" * len(A_CALL))
    for models in BESIDE:
        each = [1e6 * median(seconds[models, call]) / len(mix) / len(images) for call in A_CALL]
        print(f"| {models} | " + " | ".join(f"{one:.1f}" for one in each) + " |", flush=True)


def median(seconds: list[float]) -> float:
    """The median of the turns; the first one warms up."""
    return statistics.median(seconds[1:])


def main() -> None:
    torch.set_num_threads(1)
    for name, workload, participants in CASES:
        world, rng = world_with_validation(workload), np.random.default_rng(0)
        rows = world.first.flat + 0.05 * torch.randn(participants + 1, world.layout.size)
        mix = rng.dirichlet(np.ones(participants + 1), 2**participants)
        candidates = ways(world, mix, rows)
        results = {way: losses() for way, losses in candidates.items()}
        seconds = in_turns(candidates, TURNS + 1)
        for way in candidates:
            assert np.allclose(results[way], results["one by one"], rtol=1e-4)
            each = 1e6 * median(seconds[way]) / 2**participants / IMAGES
            faster = median(seconds["one by one"]) / median(seconds[way])
            print(f"{name}, M={participants}: {way:28} {each:6.2f} us, {faster:4.1f} times", flush=True)
    stacking(world_with_validation("W1"))


if __name__ == "__main__":
    main()
