"""DP-SGD as a whole: its limits, both engines, repetition, the ledger through rounds, and what it refuses."""

import math
import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import own_models
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from worlds import world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import State
from fedexp.parts.local.sgd import SGD
from fedexp.parts.privacy.accounting import epsilons
from fedexp.parts.privacy.dp_sgd import DPSGD, sampling_rates
from fedexp.simulation import context
from fedexp.simulation.build_world import build_world
from fedexp.simulation.round import run_round
from fedexp.simulation.rounds import run_rounds, with_workers
from fedexp.simulation.setup import compatibility
from fedexp.simulation.world import World
from fedexp.training.client.batches import draw_batches, running_losses
from fedexp.training.workers.pool import WorkerPool

Tiny = Callable[..., dict[str, Any]]
pytestmark = pytest.mark.usefixtures("_narrow")

MODELS = {
    "mlp": ("model=mlp", "dataset.shape=[12]"),
    "simple_cnn": ("model=simple_cnn", "dataset.shape=[3,8,8]"),
    "complex_cnn": ("model=complex_cnn", "model.norm=group", "dataset.shape=[1,8,8]"),
    "keras_cnn": ("model=keras_cnn", "model.dropout=0", "dataset.shape=[1,8,8]"),
    "har_cnn": ("model=har_cnn", "dataset.shape=[3,16]"),
}
PRIVATE = ("privacy=dp_sgd", "privacy.clip=0.5", "privacy.noise_multiplier=0.7", "privacy.delta=1e-3")
PAIRS = [("mlp", rule) for rule in ("sgd", "adam", "scaffold", "prox")]
PAIRS += [("simple_cnn", "scaffold"), ("complex_cnn", "sgd"), ("keras_cnn", "adam"), ("har_cnn", "prox")]
SHUFFLED = ("local.batch_size=8", "local.epochs=2")


def lived(config: dict[str, Any], upto: int | None = None) -> list[State]:
    world = world_of(config)
    with with_workers(world.exp, world, world.initial_state()) as world:
        return [state for state, _, _ in run_rounds(world.exp, world, world.initial_state())][:upto]


def final(*states: State) -> torch.Tensor:
    return states[-1].models[0].flat


@pytest.mark.usefixtures("_double")
def test_a_client_without_examples_stays_whatever_the_engine_and_its_workers(tiny: Tiny):
    """With full batches its nominal size is 0, by which nothing may be divided."""
    empty = ("federation=quantity", "federation.beta=0.1", "scenario.clients=12", "scenario.participants=12")
    words, found = (*PRIVATE, *empty, "local.batch_size=full", "local.epochs=2"), {}
    for engine in ("engine=loop", "engine=stacked", "engine=stacked engine.workers=2"):
        exp = spec.build(tiny(*words, *engine.split()))
        world = build_world(exp, None, WorkerPool())
        assert min(world.partition.sizes) == 0
        with with_workers(world.exp, world, world.initial_state()) as world:
            found[engine] = list(run_rounds(world.exp, world, world.initial_state()))
        assert all(upload.delta.isfinite().all() for _, _, upload in found[engine])
    loop, stacked, crew = ([each.models[0].flat for each, _, _ in several] for several in found.values())
    torch.testing.assert_close(stacked, loop, atol=1e-9, rtol=0)
    assert all(map(torch.equal, stacked, crew))


@pytest.mark.law("privacy=dp_sgd", "an infinite clip without noise is SGD, on both engines")
@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.parametrize("model", MODELS)
def test_no_noise_and_no_clip_is_plain_sgd(tiny: Tiny, model: str, engine: str):
    words = (*MODELS[model], *SHUFFLED, f"engine={engine}")
    plain = lived(tiny(*words, "local.drop_last=true"))
    free = ("privacy=dp_sgd", "privacy.clip=inf", "privacy.noise_multiplier=0", "privacy.delta=1e-3")
    ours = lived(tiny(*words, *free, "privacy.batches=shuffled"))
    torch.testing.assert_close(final(*ours), final(*plain), atol=1e-10, rtol=0)


@pytest.mark.law("privacy=dp_sgd", "without noise a step is the sum of the examples' gradients, each clipped by itself")
@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.parametrize("model", MODELS)
def test_one_round_without_noise_equals_gradients_clipped_one_by_one(tiny: Tiny, model: str, engine: str):
    quiet = ("privacy=dp_sgd", "privacy.clip=0.2", "privacy.noise_multiplier=0", "privacy.delta=1e-3")
    words = (*MODELS[model], *quiet, "local.batch_size=6", "federation=dirichlet", "scenario.participants=6")
    world = world_of(tiny(*words, f"engine={engine}"))
    _, _, sent = run_round(world.exp, world, world.initial_state())
    for row, client in enumerate(sent.owner.tolist()):
        expected = by_hand(world, client, 0.2)
        torch.testing.assert_close(sent.delta[row], expected - world.first.flat, atol=1e-10, rtol=0)


def by_hand(world: World, client: int, clip: float) -> torch.Tensor:
    """One client's round, one example at a time, with PyTorch alone."""
    rule, shard = world.exp.local, world.partition.shard(client)
    assert isinstance(rule.batch_size, int)
    batches = draw_batches(rule, len(shard), context.make_context(world, 1).rng("batches", client), "poisson")
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir))
    network.load_state_dict(world.layout.views(world.first.flat.clone()))
    parameters = list(network.parameters())
    for a, b in zip(batches.bounds[:-1], batches.bounds[1:], strict=True):
        total = [torch.zeros_like(entry) for entry in parameters]
        for number in shard[batches.order[a:b]]:
            inputs = world.train.inputs(torch.tensor([number]))
            loss = F.cross_entropy(network(inputs), world.train.y[[number]])
            gradient = torch.autograd.grad(loss, parameters)
            norm = math.sqrt(sum(float(each.square().sum()) for each in gradient))
            for place, each in zip(total, gradient, strict=True):
                place += each / max(1.0, norm / clip)
        with torch.no_grad():
            for entry, gradient in zip(parameters, total, strict=True):
                entry -= rule.lr * gradient / rule.batch_size
    return world.layout.flatten(network)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize(("model", "rule"), PAIRS)
def test_engines_agree_with_noise(tiny: Tiny, model: str, rule: str):
    """The noise is the same to the bit; empty batches, padded examples and finished rows add nothing but noise."""
    words = (*MODELS[model], f"local={rule}", "local.batch_size=4", "local.epochs=2", "federation=dirichlet", *PRIVATE)
    loop = lived(tiny(*words))
    stacked = lived(tiny(*words, "engine=stacked"))
    torch.testing.assert_close(final(*stacked), final(*loop), atol=1e-9, rtol=0)


@pytest.mark.parametrize("words", [("engine=loop", "engine.workers=2"), ("engine=stacked", "engine.memory_mb=0.01")])
def test_workers_and_chunks_change_nothing_but_rounding(tiny: Tiny, words: tuple[str, ...]):
    loop, other = lived(tiny(*PRIVATE)), lived(tiny(*PRIVATE, *words))
    torch.testing.assert_close(final(*other), final(*loop), atol=1e-5, rtol=0)
    assert other[-1].memory["privacy"]["columns"] == loop[-1].memory["privacy"]["columns"]


def test_equal_seeds_are_equal_bits_and_shorter_runs_are_prefixes(tiny: Tiny):
    long, again, short = (lived(tiny(*PRIVATE, f"rounds={count}")) for count in (3, 3, 2))
    assert torch.equal(final(*long), final(*again))
    assert torch.equal(final(*long[:2]), final(*short))
    other = lived(tiny(*PRIVATE, "rounds=3", "seed=1"))
    assert not torch.equal(final(*long), final(*other))


@pytest.mark.law(
    "privacy=dp_sgd",
    "the noise of a step has the deviation clip times noise_multiplier and is uncorrelated among clients",
)
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_noise_reaches_the_uploads_with_the_variance_that_was_promised(tiny: Tiny, engine: str):
    """One step of batch size B with lr 1: the delta is -(sum + noise) / B, with and without noise on equal batches."""
    words = ("local.lr=1", "local.epochs=null", "local.steps=1", "local.batch_size=10", f"engine={engine}", *PRIVATE)
    words = (*words, "scenario.clients=4", "scenario.participants=4")
    loud, quiet = (first_uploads(tiny(*words, *more)) for more in ((), ("privacy.noise_multiplier=0",)))
    noise = (loud - quiet) * 10
    assert noise.std() == pytest.approx(0.7 * 0.5, rel=0.05)
    correlation = torch.corrcoef(noise) - torch.eye(4)
    assert correlation.abs().max() < 5 / math.sqrt(noise.shape[1])


def first_uploads(config: dict[str, Any], number: int = 1) -> torch.Tensor:
    world = world_of(config)
    state, _, sent = run_round(world.exp, world, world.initial_state())
    for _ in range(number - 1):
        state, _, sent = run_round(world.exp, world, state)
    return sent.delta


def test_noise_is_new_in_every_round(tiny: Tiny):
    words = ("local.lr=1e-6", "local.epochs=null", "local.steps=1", *PRIVATE, "scenario.participants=6")
    first, second = (first_uploads(tiny(*words), number) for number in (1, 2))
    both = torch.corrcoef(torch.cat([first, second]))[:6, 6:]
    assert both.abs().max() < 5 / math.sqrt(first.shape[1])


def test_the_ledger_counts_steps_and_reports_the_largest_clients(tiny: Tiny):
    words = ("federation=dirichlet", "local.batch_size=4", "rounds=3", "selector=random", *PRIVATE)
    world = world_of(tiny(*words))
    state, taken = world.initial_state(), np.zeros(6, dtype=np.int64)
    for _ in range(3):
        state, row, sent = run_round(world.exp, world, state)
        taken[sent.owner] += world.partition.sizes[sent.owner] // 4
        statement = world.exp.privacy.client_columns(
            sent.owner, state.memory["privacy"], context.make_context(world, state.round)
        )
        rdp, pld = epsilons(sampling_rates(world.exp.local, world.partition.sizes), 0.7, taken, 1e-3)
        assert statement["epsilon_rdp"].tolist() == rdp[sent.owner].tolist()
        assert statement["epsilon_pld"].tolist() == pld[sent.owner].tolist()
        assert row["privacy.epsilon_rdp"] == rdp.max()
        assert row["privacy.epsilon_pld"] == pld.max()
        assert row["privacy.epsilon_next"] >= row["privacy.epsilon_pld"] > 0


def test_sampling_rates():
    assert sampling_rates(SGD(batch_size=5), np.array([20, 5, 4, 0])).tolist() == [0.25, 1, 0, 0]
    assert sampling_rates(SGD(batch_size="full"), np.array([20, 0])).tolist() == [1, 0]


def test_poisson_batches_are_coins_of_their_own():
    rule = SGD(epochs=3, batch_size=10)
    batches = draw_batches(rule, 45, np.random.default_rng(0), "poisson")
    assert (batches.steps, batches.epoch, batches.size) == (12, 4, 10)
    many = [draw_batches(rule, 45, np.random.default_rng(seed), "poisson").counts for seed in range(300)]
    counts = np.concatenate(many)  # Binomial(45, 10 / 45)
    assert counts.mean() == pytest.approx(10, abs=0.2)
    assert counts.var() == pytest.approx(10 * (1 - 10 / 45), rel=0.1)
    assert draw_batches(rule, 9, np.random.default_rng(0), "poisson").steps == 0


def test_shuffled_batches_are_whole():
    batches = draw_batches(SGD(epochs=2, batch_size=10, order="file"), 45, np.random.default_rng(0), "shuffled")
    assert batches.counts.tolist() == [10] * 8
    assert len(set(batches.order[:40].tolist())) == 40
    assert batches.order[:40].tolist() != sorted(batches.order[:40].tolist())


def test_an_epoch_without_examples_has_no_loss():
    batches = draw_batches(SGD(epochs=1, batch_size=1), 2, np.random.default_rng(0), "poisson")
    empty = type(batches)(np.zeros(0, np.int64), np.zeros(3, np.int64), 2, 1)
    assert np.isnan(running_losses(np.zeros(2), empty.counts, empty.epoch)).all()


def test_sigma_is_worked_out_for_the_worst_client(tiny: Tiny):
    words = ("privacy=dp_sgd", "privacy.clip=1", "privacy.epsilon=2", "privacy.delta=1e-3", "federation=dirichlet")
    states = lived(tiny(*words, "local.batch_size=4", "selector=all"))
    last = states[-1].memory["privacy"]["columns"]
    assert 1.9 < last["epsilon_pld"] <= 2
    assert last["epsilon_rdp"] > last["epsilon_pld"]


@pytest.mark.law("privacy=dp_sgd", "a run that may spend epsilon = 2 ends before it has spent more")
def test_the_budget_ends_the_run_before_it_is_overdrawn(tiny: Tiny):
    words = ("privacy=dp_sgd", "privacy.clip=1", "privacy.epsilon=2", "privacy.delta=1e-3", "selector=all")
    states = lived(tiny(*words, "rounds=9", "privacy.rounds=4", "stop=privacy_budget"))
    assert len(states) == 4
    last = states[-1].memory
    assert last["privacy"]["columns"]["epsilon_pld"] <= 2 < last["privacy"]["columns"]["epsilon_next"]
    assert last["stop"]["reason"].startswith("one more round could cost epsilon 2.")


def test_a_budget_that_the_first_round_could_overdraw_is_refused(tiny: Tiny):
    words = ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=0.5", "privacy.delta=1e-3")
    with pytest.raises(ConfigError, match="stop=privacy_budget leaves no round to run: one more round could cost eps"):
        world_of(tiny(*words, "stop=privacy_budget", "stop.epsilon=0.1"))


REFUSED = {
    (
        "privacy=dp_sgd",
        "privacy.delta=1e-5",
        "privacy.epsilon=1",
    ): "privacy.clip (the norm at which each example's gradient is clipped) must be given, such as privacy.clip=1",
    ("privacy=dp_sgd", "privacy.clip=1", "privacy.epsilon=1"): "privacy.delta (well below 1 / number of those "
    "protected) must be given, such as privacy.delta=1e-5",
    ("privacy=dp_sgd",): "must be given, such as privacy.clip=1 privacy.delta=1e-5 privacy.epsilon=8",
    (
        "privacy=dp_sgd",
        "privacy.clip=1",
        "privacy.delta=1e-5",
    ): "privacy.epsilon (or privacy.noise_multiplier, which is "
    "computed from it) must be given, such as privacy.epsilon=8",
    (*PRIVATE, "privacy.epsilon=1"): "got both, 0.7 and 1; set one of them to null",
    (*PRIVATE, "model=complex_cnn", "dataset.shape=[1,8,8]"): "use model.norm=group",
    (*PRIVATE, "selector=afl"): "selector=afl learns the losses of clients; use selector=random",
    (*PRIVATE, "selector=oort", "fleet=simulated"): "learns the losses",
    (*PRIVATE, "selector=hybridfl", "fleet=simulated"): "and examples themselves; use selector=random",
    (*PRIVATE, "aggregator=pfnm"): "aggregator=pfnm learns how many examples of each class a client holds",
    ("stop=privacy_budget", "stop.epsilon=1"): "stop=privacy_budget needs a ledger",
    (*PRIVATE, "stop=privacy_budget"): "stop.epsilon must be given",
}


@pytest.mark.parametrize("words", REFUSED, ids=lambda words: " ".join(words[-2:]))
def test_what_cannot_work_is_refused_in_one_line(tiny: Tiny, words: tuple[str, ...]):
    with pytest.raises(ConfigError) as error:
        compatibility.refuse(spec.build(tiny(*words)))
    assert REFUSED[words] in str(error.value)
    assert "\n" not in str(error.value)


class Centred(nn.Module):
    """Takes the examples' mean off in training: of the batch at hand, or a running one in a buffer."""

    mean: torch.Tensor

    def __init__(self, running: bool) -> None:
        super().__init__()
        self.running = running
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training and self.running:
            self.mean.mul_(0.9).add_(0.1 * x.detach().mean(dim=0))
        return x - (x.mean(dim=0) if self.training and not self.running else self.mean)


class Counted(nn.Module):
    """Counts its batches in a buffer, whatever is in them, and forgets some units."""

    batches: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("batches", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.batches += self.training
        return nn.functional.dropout(x, 0.5, self.training)


class Gated(nn.Module):
    """Mixes the examples of a batch once training has opened its gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + (self.gate * x.mean(dim=0) if self.training else 0.0)


FIRST_LAYERS = {
    "gate of 0": (Gated, "says of an example what depends on the others of its batch"),
    "running mean": (lambda: Centred(running=True), "moves its buffer 0.mean by the examples of a batch, and clients"),
    "mean of a batch": (lambda: Centred(running=False), "says of an example what depends on the others of its batch"),
    "instance norm": (
        lambda: nn.Sequential(nn.Unflatten(1, (2, 4)), nn.InstanceNorm1d(2, track_running_stats=True), nn.Flatten()),
        "moves its buffer 0.1.running_mean by the examples",
    ),
    "counter": (Counted, ""),
}


@pytest.mark.parametrize("layer", FIRST_LAYERS)
def test_an_example_may_show_in_nothing_but_its_own_gradient(tiny: Tiny, layer: str):
    first, complaint = FIRST_LAYERS[layer]
    own_models.LAYERS["tested"] = lambda facts: nn.Sequential(first(), nn.Linear(8, facts.classes))
    model = {"model": {"_target_": "own_models.Layered", "layers": "tested"}}
    world_of({**tiny(), **model})
    refusal = pytest.raises(ConfigError, match=re.escape(complaint)) if complaint else nullcontext()
    with refusal:
        world_of({**tiny(*PRIVATE), **model})


def test_clients_that_are_all_too_small_are_refused_before_training(tiny: Tiny):
    with pytest.raises(ConfigError, match=r"no client has local\.batch_size=50 examples"):
        world_of(tiny(*PRIVATE, "local.batch_size=50"))


@pytest.mark.parametrize(("delta", "told"), [(0.5, True), (0.1, True), (0.09, False)])
def test_a_delta_that_promises_nothing_is_told(delta: float, told: bool, caplog: pytest.LogCaptureFixture):
    rule = SGD(epochs=1, batch_size=5)
    DPSGD(clip=1.0, noise_multiplier=1.0, delta=delta).calibrate_noise(np.array([10, 4]), rule, 1.0)
    assert ("less than 1 / 10" in caplog.text) == told
