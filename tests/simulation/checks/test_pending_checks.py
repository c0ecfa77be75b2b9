"""One look at all models: what is said of the first that is not finite, and when."""

from dataclasses import replace
from typing import Any

import own_parts
import pytest
import torch
from worlds import Tiny, uploads_like, world_of

from fedexp.core.errors import ConfigError, RunError
from fedexp.core.values import Weights
from fedexp.simulation import context
from fedexp.simulation.checks.pending_checks import PendingChecks
from fedexp.simulation.round import fold

NAN, INFINITE = float("nan"), float("inf")


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each look at the device is for."""
    stack, found = torch.stack, []

    def noted(rows: list[torch.Tensor], *args: Any, **more: Any) -> torch.Tensor:
        if rows[0].dtype == torch.bool:
            found.append(len(rows))
        return stack(rows, *args, **more)

    monkeypatch.setattr(torch, "stack", noted)
    return found


def spoil(part: str, number: float) -> None:
    own_parts.MISTAKE[part] = lambda answer, *_: (replace(answer[0], flat=answer[0].flat * number), *answer[1:])


@pytest.fixture
def world(tiny: Tiny) -> Any:
    parts = {"aggregator": {"_target_": "own_parts.Combining"}, "server_optimizer": {"_target_": "own_parts.Stepping"}}
    yield world_of({**tiny("dataset.train_size=60", "model.hidden=[]"), **parts})
    own_parts.MISTAKE.clear()


def fold_once(world: Any, checks: PendingChecks) -> tuple[Weights, ...]:
    uploads = uploads_like(torch.full((3, world.layout.size), 0.5))
    return fold(world.exp, (world.first,), uploads, {}, context.make_context(world, 1), checks)[0]


def whole_round(world: Any, error: Exception | None = None, number: int = 1) -> None:
    """Folds, and fails with the error or expects finite models after the round of this number."""
    with PendingChecks() as checks:
        models = fold_once(world, checks)
        if error is not None:
            raise error
        checks.expect_finite(models, number)


def test_all_models_are_looked_at_once(world: Any, looks: list[int]):
    with PendingChecks() as checks:
        checks.expect_finite(fold_once(world, checks), 1)
        assert looks == []
    assert looks == [1]  # the optimizer takes the proposal as it is
    assert checks.pending == []


@pytest.mark.parametrize("number", [NAN, INFINITE])
@pytest.mark.parametrize("error", [None, ValueError("Input contains NaN")])
def test_the_aggregator_is_named_and_not_who_takes_what_it_made(world: Any, number: float, error: Exception | None):
    spoil("combine", number)
    with pytest.raises(ConfigError, match="Combining: combine must return finite numbers for 3 finite uploads"):
        whole_round(world, error)


def test_an_error_of_another_kind_passes(world: Any):
    with pytest.raises(ValueError, match="of a part"):
        whole_round(world, ValueError("of a part"))


def test_the_optimizer_is_named_for_nan(world: Any):
    spoil("step", NAN)
    with pytest.raises(ConfigError, match="Stepping: step must return finite numbers for a finite proposal"):
        whole_round(world)


def test_nobody_is_named_for_too_long_a_step(world: Any):
    own_parts.MISTAKE["step"] = lambda answer: (replace(answer[0], flat=answer[0].flat.clone().fill_(INFINITE)), {})
    with pytest.raises(RunError, match="not finite after round 7; the state of round 6 is kept"):
        whole_round(world, number=7)


def test_a_second_model_lets_go_of_the_uploads_of_the_first(tiny: Tiny, looks: list[int]):
    world = world_of(tiny("clustering=ifca", "dataset.train_size=60"))
    models, uploads = (world.first,) * 3, uploads_like(torch.ones(4, world.layout.size))
    uploads = replace(uploads, model=uploads.owner % 2 + 1)
    checks = PendingChecks()
    fold(world.exp, models, uploads, {}, context.make_context(world, 1), checks)
    assert len(looks) == 1
    assert len(checks.pending) == 2
