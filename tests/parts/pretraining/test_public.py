"""The first model, trained by the server: a step by hand, the same for every engine, and what it needs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from worlds import world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError, RunError
from fedexp.run.run import run
from fedexp.run.summary import read_metrics
from fedexp.simulation.setup import compatibility

Tiny = Callable[..., dict[str, Any]]
pytestmark = pytest.mark.usefixtures("_narrow")
PUBLIC = ("scenario.public_fraction=0.5", "pretraining=public")


def test_one_full_batch_step_is_the_gradients(tiny: Tiny):
    step = ("pretraining.epochs=1", "pretraining.batch_size=full", "pretraining.optimizer=sgd", "pretraining.lr=0.5")
    drawn = world_of(tiny("scenario.public_fraction=0.5", "model.hidden=[]"))
    taught = world_of(tiny(*PUBLIC, *step, "model.hidden=[]"))
    assert taught.public is not None
    row = drawn.first.flat.clone().requires_grad_()
    weight, bias = drawn.layout.views(row).values()
    F.cross_entropy(taught.public.x @ weight.T + bias, taught.public.y).backward()
    assert row.grad is not None
    torch.testing.assert_close(taught.first.flat, row.detach() - 0.5 * row.grad)


def test_the_first_step_of_adam_is_its_rate(tiny: Tiny):
    step = ("pretraining.epochs=1", "pretraining.batch_size=full", "pretraining.lr=0.01", "model.hidden=[]")
    drawn, taught = world_of(tiny("scenario.public_fraction=0.5", "model.hidden=[]")), world_of(tiny(*PUBLIC, *step))
    moved = (taught.first.flat - drawn.first.flat).abs()
    torch.testing.assert_close(moved, torch.full_like(moved, 0.01), atol=1e-5, rtol=0)


def test_more_epochs_know_more(tiny: Tiny):
    told = [
        world_of(tiny(*PUBLIC, f"pretraining.epochs={epochs}")).preparation_figures["pretraining"] for epochs in (1, 40)
    ]
    assert told[0]["public_accuracy"] < told[1]["public_accuracy"] > 0.7


@pytest.mark.parametrize("model", ["mlp", "keras_cnn", "complex_cnn"])
def test_the_model_does_not_depend_on_the_engine(tiny: Tiny, model: str):
    images = ("dataset.shape=[1,8,8]", f"model={model}", "pretraining.epochs=1")
    loop, stacked = (world_of(tiny(*PUBLIC, *images, f"engine={engine}")).first for engine in ("loop", "stacked"))
    assert torch.equal(loop.flat, stacked.flat)


def test_none_leaves_the_drawn_model(tiny: Tiny):
    plain, public = world_of(tiny()), world_of(tiny("scenario.public_fraction=0.5"))
    assert torch.equal(plain.first.flat, public.first.flat)
    assert public.preparation_figures == {"features": {}, "pretraining": {}}


def test_workers_share_one_first_model(tiny: Tiny, tmp_path: Path):
    for workers in (1, 2):
        run(tiny(*PUBLIC, f"engine.workers={workers}"), tmp_path / str(workers))
    alone, shared = (read_metrics(tmp_path / str(workers) / "metrics.csv") for workers in (1, 2))
    np.testing.assert_array_equal(alone["test_loss"], shared["test_loss"])


def test_the_run_tells_what_it_came_to(tiny: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    run(tiny(*PUBLIC), tmp_path)
    assert "public: 60 training examples are the server's alone" in caplog.text
    assert "pretraining: public_accuracy 0." in caplog.text
    assert '"pretraining.public_accuracy": 0.' in (tmp_path / "summary.json").read_text()


def test_without_public_data_it_is_refused(tiny: Tiny):
    with pytest.raises(ConfigError, match=r"pretraining=public needs public data.*use scenario\.public_fraction=0\.2"):
        compatibility.refuse(spec.build(tiny("pretraining=public")))


def test_a_model_that_diverges_ends_the_run(tiny: Tiny):
    with pytest.raises(RunError, match=r"lower pretraining\.lr"):
        world_of(tiny(*PUBLIC, "pretraining.optimizer=sgd", "pretraining.lr=1e38"))
