"""What every model must keep, found from conf/: it takes examples or says why not, and both engines train it alike."""

from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from composing import options
from networks import FEW, HAR, SMALLEST, TABLE, published
from worlds import Tiny, first_round, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import Layout
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.complex_cnn import ComplexCNN
from fedexp.parts.model.contract import Model
from fedexp.parts.model.keras_cnn import KerasCNN
from fedexp.run.run import complete
from fedexp.verify import rerun

pytestmark = pytest.mark.usefixtures("_narrow")
TEXT = Facts((9,), 7, 10, vocabulary=5)
SEVERAL = [Facts(shape, 7, 10) for shape in ((1, 8, 8), (3, 32, 32), (6, 128), (561,), (8,))]
DRAWN = [option for option in options("model") if option not in ("mixture", "torch", "torchvision")]
NOISY = ("privacy=dp_sgd", "privacy.clip=0.5", "privacy.noise_multiplier=0.5", "privacy.delta=1e-3")


@pytest.mark.parametrize("model", [published("simple_cnn"), ComplexCNN(), KerasCNN()])
@pytest.mark.parametrize("shape", [HAR, TABLE, (1, 3, 3)])
def test_image_networks_say_what_they_need(model: Model, shape: tuple[int, ...]):
    with pytest.raises(ConfigError, match=r"needs images .* have shape .*; use model=mlp"):
        model.refuse(Facts(shape, 10, 1))


def words(option: str, *more: str) -> tuple[str, ...]:
    return (f"model={option}", *SMALLEST.get(option, ()), *more)


def subject(option: str) -> str:
    """The model that says what it cannot take: of a mixture its component."""
    return "model@model.component=mlp" if option == "mixture" else f"model={option}"


def refused(model: Model, facts: Facts, option: str) -> bool:
    try:
        model.refuse(facts)
    except ConfigError as error:
        assert str(error).startswith(f"{subject(option)} needs")  # noqa: PT017 - either outcome is right
        return True
    return False


@pytest.mark.parametrize("option", options("model"))
def test_every_model_runs_or_says_why_not(tiny: Tiny, option: str):
    model, taken = spec.build(tiny(*words(option))).model, 0
    for facts in SEVERAL if option == "torch" else (*SEVERAL, TEXT):
        if refused(model, facts, option):
            continue
        network, taken = model.network(facts), taken + 1
        x = torch.arange(3 * 9).view(3, 9) % 5 if facts.vocabulary else torch.randn(3, *facts.shape)
        logits = network(x)
        assert logits.shape == (3, 7)
        grads = torch.autograd.grad(logits.sum(), list(network.parameters()), allow_unused=True)
        assert all(grad is not None for grad in grads)
        assert Layout.of(network).size == sum(grad.numel() for grad in grads if grad is not None) + sum(
            buffer.numel() for buffer in network.buffers()
        )
    assert taken, "there are examples that it takes"


@pytest.mark.parametrize("option", [option for option in options("model") if option not in ("char_lstm", "torch")])
def test_only_those_for_text_take_text(tiny: Tiny, option: str):
    text = f"{subject(option).partition('=')[0]}=char_lstm, which reads text"
    with pytest.raises(ConfigError, match=f"^{subject(option)} needs .*; use {text}$"):
        spec.build(tiny(*words(option))).model.refuse(TEXT)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("option", options("model"))
def test_both_engines_train_it_alike(tiny: Tiny, option: str):
    sizes = ("federation=dirichlet", "federation.alpha=5", "federation.min_size=2", "local.batch_size=3")
    loop, stacked = (world_of(tiny(*words(option, *sizes, f"engine={engine}"))) for engine in ("loop", "stacked"))
    task, rows = first_round(loop), np.arange(2)
    alone = loop.trainer.run(task, rows)
    torch.testing.assert_close(stacked.trainer.run(task, rows), alone, atol=1e-9, rtol=0)
    assert not torch.equal(alone[0, :-2], loop.first.flat)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("option", options("model"))
def test_both_engines_clip_and_noise_it_alike(tiny: Tiny, option: str):
    private = (*NOISY, "local.batch_size=3", *(("model.norm=group",) if option == "complex_cnn" else ()))
    loop, stacked = (world_of(tiny(*words(option, *private, f"engine={engine}"))) for engine in ("loop", "stacked"))
    task, rows = first_round(loop), np.arange(2)
    alone = loop.trainer.run(task, rows)
    noise = loop.trainer.run(task, rows[:1])
    assert torch.equal(noise[0], alone[0])
    torch.testing.assert_close(stacked.trainer.run(task, rows), alone, atol=1e-9, rtol=0)


@pytest.mark.parametrize(("option", "law"), list(zip(DRAWN, cycle(("default", "glorot_uniform", "he_normal")))))
def test_what_is_drawn_here_is_drawn_by_the_law_and_the_seed(tiny: Tiny, option: str, law: str):
    composed = tiny(*words(option))
    rows = []
    for seed, last in ((1, None), (1, "zeros"), (2, None)):
        config = {**composed, "model": {**composed["model"], "init": law, "last_layer": last}}
        model = spec.build(config).model
        facts = next(facts for facts in (*SEVERAL, TEXT) if not refused(model, facts, option))
        network = model.network(facts)
        model.initialise(network, np.random.Generator(np.random.Philox(key=seed)))
        rows.append(Layout.of(network).flatten(network)[: Layout.of(network).parameters])
        last_layer = list(network.parameters())[-2:]
        assert all((entry == 0).all() for entry in last_layer) == (last == "zeros")
    kept = sum(entry.numel() for entry in last_layer)
    assert torch.equal(rows[0][:-kept], rows[1][:-kept])
    assert not torch.equal(rows[0][:-kept], rows[2][:-kept]) or option == "logistic"


@pytest.mark.parametrize(
    "given",
    ["char_lstm model.last_layer=zeros", "two_conv_dropout model.init=he_normal"],
)
def test_three_workers_and_a_resumed_run_leave_what_one_worker_does(tiny: Tiny, given: str, tmp_path: Path):
    option, key = given.split()
    few = ("scenario.local_lr=0.001", "local.batch_size=3", *FEW)
    configs = {count: tiny(*words(option, key, *few, f"engine.workers={count}")) for count in (1, 3)}

    def interrupt(row: dict[str, Any]) -> None:
        if row["round"] == 1:
            raise KeyboardInterrupt

    for name in ("one", "three"):
        (tmp_path / name).mkdir()
    complete(configs[1], tmp_path / "one")
    with pytest.raises(KeyboardInterrupt):
        complete(configs[3], tmp_path / "three", interrupt)
    complete(configs[3], tmp_path / "three")
    one, three = ((tmp_path / name / "digests.csv").read_bytes() for name in ("one", "three"))
    assert one == three
    stage = rerun.build_rerun(configs[1], {"name": "loop", "reason": ""})
    recomputed = [[str(each.round), each.digest] for each in stage.recompute_rounds(None, 2)]
    assert recomputed == [line.split(",")[:2] for line in one.decode().split()[1:]]
