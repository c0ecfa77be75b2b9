"""What needs classes says so, before data is loaded, where targets are none."""

import pytest
from own_targets import told
from worlds import Tiny, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.setup import compatibility


@pytest.mark.parametrize("targets", ["labels", "numbers", "tokens"])
@pytest.mark.parametrize(
    "words",
    [
        ("federation=dirichlet",),
        ("federation=shards",),
        ("federation=shamsian",),
        ("selector=hybridfl", "fleet=simulated"),
        ("attack=label_flip",),
        ("attack=backdoor",),
        ("clustering=ifca",),
        ("audit=canaries", "audit.score=loss"),
        ("aggregator=pfnm",),
        ("local=fedlc",),
        ("evaluation.local_models=true",),
    ],
    ids=lambda words: words[0],
)
def test_what_needs_classes_is_refused(tiny: Tiny, targets: str, words: tuple[str, ...]):
    role = words[0].partition("=")[0]
    cure = "leave it out" if role.startswith("evaluation") else f"use another {role}"
    said = rf"^{words[0]} needs targets that are classes, but those of dataset=own_targets\.Told are {targets}; "
    with pytest.raises(ConfigError, match=f"{said}{cure}$"):
        compatibility.refuse(spec.build(told(tiny(*words), targets)))


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (("local.order=by_class",), "local.order=file"),
        (
            ("evaluation.personal_split=by_class", "evaluation.personal_fraction=0.2"),
            "evaluation.personal_split=random",
        ),
    ],
)
def test_a_value_that_needs_classes_names_another(tiny: Tiny, words: tuple[str, ...], instead: str):
    with pytest.raises(ConfigError, match=rf"^{words[0]} needs targets that are classes.* numbers; use {instead}$"):
        compatibility.refuse(spec.build(told(tiny(*words), "numbers")))


@pytest.mark.parametrize("targets", ["labels", "numbers", "tokens"])
@pytest.mark.parametrize(
    "words",
    [
        ("selector=greedyfed",),
        ("selector=oort",),
        ("selector=power_of_choice", "evaluation.client_losses=exact"),
        ("aggregator=zeno", "scenario.byzantine=0"),
        ("attack=sign_flip", "scenario.malicious=1"),
        ("pretraining=public", "scenario.public_fraction=0.2"),
        ("stop=patience", "stop.of=metric"),
    ],
    ids=lambda words: words[0],
)
def test_everything_else_works(tiny: Tiny, targets: str, words: tuple[str, ...]):
    config = told(tiny(*words), targets)
    compatibility.refuse(spec.build(config))
    world = world_of(config)
    *_, (state, row, _) = run_rounds(world.exp, world, world.initial_state())
    assert state.round == 2
    assert row["test_loss"] > 0
