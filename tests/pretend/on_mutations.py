"""Faults that would show on a GPU alone, put into fedexp one by one: the pretend device shows each."""

import gc
import inspect
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pretend_device as pretend
import pytest
import torch
from composing import tiny
from worlds import first_round, world_of

from fedexp.core.values import Weights
from fedexp.scoring.side_stream import PendingScore
from fedexp.simulation.world import World
from fedexp.training.layers.kinds.convolution import batched
from fedexp.training.stacked.bucket import Bucket
from fedexp.training.stacked.graph_cache import CudaGraphCache
from fedexp.training.stacked.trainer import StackedTrainer

Patch = pytest.MonkeyPatch
MOVING = ("schedule=cosine", "rounds=4")
DROPOUT = ("model.hidden=[16]", "model.dropout=0.5")
WIDE = ("model=chain", "model.layers=[conv 64 1, conv 2 3, relu, flatten, linear]", "dataset.shape=[1,4,4]")
NORMED = "[conv 4 3, tanh, group_norm 2, pool 2, channel_dropout 0.2, batch_norm, relu, flatten, dropout 0.2, linear]"
LAYERED = (
    (),
    ("engine.precision=bf16",),
    ("model=chain", f"model.layers={NORMED}", "dataset.shape=[1,8,8]"),
    ("model=torch", "model.factory=own_networks:sums", "dataset.shape=[1,8,8]"),
    ("model=simple_cnn", "dataset.shape=[3,8,8]", "engine.memory_mb=0.2"),
    WIDE,
)


def world(*words: str, device: str = "pretend") -> World:
    config = tiny("engine=stacked", *words)
    return world_of({**config, "engine": {**config["engine"], "device": device}})


def trained(here: World, number: int = 1, clients: slice = slice(None)) -> torch.Tensor:
    """What clients make of a round, `[R, D + 2]`."""
    task = first_round(here, number)
    return here.trainer.run(task, np.arange(len(task.batches))[clients])


@cache
def expected(words: tuple[str, ...], number: int) -> torch.Tensor:
    """The same, on a CPU."""
    return trained(world(*words, device="cpu"), number)


def train_two_rounds(*words: str) -> None:
    """The second round replays the graph of the first."""
    here = world(*words)
    for number in (1, 2):
        rows = trained(here, number).cpu()
        torch.testing.assert_close(rows, expected(words, number), atol=2e-5, rtol=1e-4, msg="other rows than a CPU's")


def score(here: World, weights: Weights) -> PendingScore:
    """Begins to score a model that the current stream has just computed."""
    pending = here.score_later(Weights(weights.flat * 2, weights.layout), here.test)
    assert isinstance(pending, PendingScore)
    return pending


def on_the_second_gpu(patch: Patch) -> None:
    patch.setenv("LOCAL_RANK", "1")
    train_two_rounds()


def two_scores(_: Patch) -> None:
    here = world()
    with pretend.Races():
        assert all(np.isfinite(score(here, here.first).result().loss) for _ in range(2)), "the sums have not come"


def scores_of_two_widths(_: Patch) -> None:
    """The network's memory for the narrow model goes while the second stream may still be at it."""
    here, wide = world(), world("model.hidden=[200]").first
    with pretend.Races():
        for pending in [score(here, weights) for weights in (here.first, wide)]:
            pending.result()


def a_capture(_: Patch) -> None:
    here = world()
    with pretend.Races():
        trained(here)


def a_capture_in_a_new_thread(_: Patch) -> None:
    """Which has used no library yet."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(trained, world()).result()


def two_groups(_: Patch) -> None:
    here = world()
    with pretend.Races():
        for clients in (slice(0, 3), slice(3, 6)):
            trained(here, clients=clients)


def convolve_row_by_row(patch: Patch) -> None:
    patch.setattr(batched, "choose_implementation", lambda *_, **__: "separate")


def wide_patches(patch: Patch) -> None:
    convolve_row_by_row(patch)
    here = world(*WIDE)
    with pretend.Races() as races:
        trained(here, clients=slice(0, 2))
    assert len(races.streams) > 2


def a_rate_that_moves(_: Patch) -> None:
    train_two_rounds(*MOVING)


def a_process_that_was_not_deterministic(_: Patch) -> None:
    torch.use_deterministic_algorithms(False)
    trained(world())


def two_rounds(_: Patch) -> None:
    train_two_rounds()


def graphs_of_two_sizes(_: Patch) -> None:
    """What their networks drew goes with them; of the last one the two seeds of each client stay, 8 bytes."""
    here, left = world(*DROPOUT), []
    assert isinstance(here.trainer, StackedTrainer)
    for clients in (6, 2):
        trained(here, clients=slice(clients))
        here.trainer.buckets.clear()
        gc.collect()
        left.append(pretend.memory_allocated() - 8 * clients)
    assert left[0] == left[1], "memory of a graph is left"


def what_a_graph_leaves(patch: Patch) -> None:
    """Without the graph a capture leaves nothing; where it draws, the seeds of the one before go, 8 bytes a client."""
    capture, left = CudaGraphCache._capture, []

    def noted(cache: CudaGraphCache, bucket: Bucket) -> Any:
        gc.collect()
        before = pretend.memory_allocated()
        graph: Any = capture(cache, bucket)
        graph.steps.clear()  # a CUDA graph keeps addresses, and no tensor
        gc.collect()
        left.append(pretend.memory_allocated() - before)
        return graph

    patch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # the device has none
    for words in LAYERED:
        if words is WIDE:
            convolve_row_by_row(patch)
        here = world(*words)
        assert isinstance(here.trainer, StackedTrainer)
        assert here.trainer.plan is not None
        trained(here)  # what is made once is there: hashes of coordinates, the numbers of the steps for draws
        here.trainer.buckets.clear()
        with patch.context() as within:
            within.setattr(CudaGraphCache, "_capture", noted)
            trained(here)
        assert left.pop() <= 0, f"memory of a graph of {words} is left"


class Mutation(NamedTuple):
    """A change of a function of fedexp, the scenario that must fail with it, and how."""

    name: str
    function: str
    old: str
    new: str
    scenario: Callable[[Patch], None]
    failure: str


ORDER, FREED, ROWS = "another stream may still be at the same", "freed while another stream", "other rows than a CPU's"
MUTATIONS = (
    Mutation(
        "m1 the current device is never set",
        "training.engine.contract:Engine.activate_device",
        "torch.cuda.set_device(device)",
        "pass",
        on_the_second_gpu,
        ROWS,
    ),
    Mutation(
        "m2 the second stream does not wait for the first",
        "scoring.side_stream:SideStreamScorer.begin",
        "self.stream.wait_stream(torch.cuda.current_stream())",
        "pass",
        two_scores,
        ORDER,
    ),
    Mutation(
        "m3 the second stream's network lives in memory of the first",
        "scoring.side_stream:SideStreamScorer.__init__",
        "with torch.cuda.stream(self.stream):",
        "if True:",
        scores_of_two_widths,
        FREED,
    ),
    Mutation(
        "m4 the host reads the sums without waiting",
        "scoring.side_stream:PendingScore.result",
        "self.begin.seconds_until(self.end)",
        "0.0",
        two_scores,
        "the sums have not come",
    ),
    Mutation(  # torch.cuda.graph of PyTorch 2.14 waits for the whole device before it captures; nothing promises that
        "m5 no wait for the warm-up before a capture",
        "training.stacked.graph_cache:CudaGraphCache._capture",
        "torch.cuda.current_stream().wait_stream(side)",
        "pass",
        a_capture,
        ORDER,
    ),
    Mutation(
        "m6 no warm-up",
        "training.stacked.graph_cache:CudaGraphCache._capture",
        "range(WARM_UP_STEPS)",
        "range(0)",
        a_capture_in_a_new_thread,
        "making a handle",
    ),
    Mutation(
        "m7 one reused pinned buffer for uploads",
        "training.client.examples:Examples.to_device",
        "to_device(index, self.x.device)",
        "vars(self).setdefault('pinned', {}).setdefault(index.shape, torch.from_numpy(index.copy()).pin_memory())"
        ".copy_(torch.from_numpy(np.ascontiguousarray(index))).to(self.x.device, non_blocking=True)",
        two_groups,
        "written to before",
    ),
    Mutation(
        "m8 the side streams of PerRowConvolution are never joined",
        "training.layers.kinds.convolution.batched:_run_in_streams",
        "current.wait_stream(side)",
        "pass",
        wide_patches,
        ORDER,
    ),
    Mutation(
        "m9 the rate is baked into the graph",
        "training.stacked.buckets:Buckets._prepare_bucket",
        "bucket.rule = self.recipe.rule.at(bucket.lr)",
        "pass",
        a_rate_that_moves,
        ROWS,
    ),
    Mutation(
        "m10 make_deterministic is never called",
        "training.engine.contract:Engine.activate_device",
        'make_deterministic(tf32=self.precision == "tf32")',
        "pass",
        a_process_that_was_not_deterministic,
        "deterministic settings",
    ),
    Mutation(
        "m11 the step counter is not put back",
        "training.stacked.step_schedule:StepSchedule.load",
        "self.steps_done.zero_()",
        "pass",
        two_rounds,
        ROWS,
    ),
    Mutation(  # results stay: the first step of every graph draws anew; but the memory is never free again
        "m12 draws of a graph are kept",
        "training.stacked.trainer:StackedTrainer._graph_steps",
        "self.keyed_random.prefetched = None",
        "pass",
        graphs_of_two_sizes,
        "memory of a graph is left",
    ),
    Mutation(
        "m13 layers keep what a graph computes",
        "training.stacked.trainer:StackedTrainer._graph_steps",
        "bucket.batched_pass.release()",
        "pass",
        what_a_graph_leaves,
        "of a graph of .* is left",
    ),
)
NAMES = [mutation.name for mutation in MUTATIONS]
SCENARIOS = {mutation.scenario.__name__: mutation.scenario for mutation in MUTATIONS}


def mutate(patch: Patch, mutation: Mutation) -> None:
    """Replaces the function by one that is compiled of its changed source, with the globals of its module."""
    place, _, path = mutation.function.partition(":")
    module, (owner, _, name) = import_module(f"fedexp.{place}"), path.rpartition(".")
    function = attrgetter(path)(module)
    source, old, new = map(pretend.for_pretend, (inspect.getsource(function), mutation.old, mutation.new))
    assert source.count(old) == 1, f"{mutation.function} must say once: {mutation.old}"
    found: dict[str, Any] = {}
    exec(compile(textwrap.dedent(source).replace(old, new), module.__file__ or "", "exec"), vars(module), found)
    patch.setattr(attrgetter(owner)(module) if owner else module, name, found[name])


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    """Puts back what a run sets in its process."""
    mode = torch.get_deterministic_debug_mode()
    yield
    torch.set_deterministic_debug_mode(mode)
    pretend.set_device(0)


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenarios_pass(name: str, monkeypatch: Patch):
    SCENARIOS[name](monkeypatch)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=NAMES)
def test_mutations_are_caught(mutation: Mutation, monkeypatch: Patch):
    mutate(monkeypatch, mutation)
    with pytest.raises(Exception, match=mutation.failure):
        mutation.scenario(monkeypatch)
