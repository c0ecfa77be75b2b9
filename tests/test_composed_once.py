"""What Hydra remembers between the tests is what it composes without a memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from composed_once import PATCHED
from hydra.types import RunMode
from omegaconf import OmegaConf

from fedexp.config.compose import Request, make_composer
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError
from fedexp.run.isolation import isolate_process

WORDS = (
    (),
    ("dataset=synthetic", "local.lr=0.3", "dataset.shape=[1,8,8]"),
    ("algorithm=fedadam", "selector=oort", "server_optimizer.lr=0.5"),
    ("experiment=dp_sgd", "~stop", "+more={a: 1}"),
    ("hydra/launcher=joblib", "hydra.launcher.jobs=3", "hydra/sweeper=one_at_a_time"),
    ("selector=ucb", "selector={count: 3}"),
)
WRONG = (("selector=none_such",), ("selector.cout=3",), ("+selector=ucb",), ("hydra/launchr=joblib",), ("hydra/no=1",))


@contextmanager
def forgotten() -> Iterator[None]:
    """Hydra as it is."""
    with pytest.MonkeyPatch.context() as patch:
        for holder, name in PATCHED:
            patch.setattr(holder, name, getattr(holder, name).__wrapped__)
        yield


def composed(*words: str, mode: RunMode = RunMode.RUN, own: Path | None = None) -> tuple[dict, str, bool]:
    """A whole config, what is chosen in it, and whether keys can be added."""
    with isolate_process():
        request = Request(conf_dir(), list(words), config_dir=own)
        try:
            config: Any = make_composer(request).compose_config("config", request.overrides, mode)
        except ConfigError as error:
            return {}, str(error), True
        plain = OmegaConf.to_container(config, resolve=False)
        assert isinstance(plain, dict)
        config.seed = 77  # is no affair of the next one
        return (
            {str(key): value for key, value in plain.items()},
            str(config.hydra.runtime.choices),
            bool(OmegaConf.is_struct(config)),
        )


@pytest.mark.parametrize("words", [*WORDS, *WRONG], ids=" ".join)
def test_the_second_time_is_like_the_first_and_like_hydras_own(words: tuple[str, ...]):
    first, second = composed(*words), composed(*words)
    with forgotten():
        assert first == second == composed(*words)


def test_sweeps_are_composed_alike():
    words = ("selector=ucb,oort", "seed=0,1", "hydra.mode=MULTIRUN")
    first, second = composed(*words, mode=RunMode.MULTIRUN), composed(*words, mode=RunMode.MULTIRUN)
    with forgotten():
        assert first == second == composed(*words, mode=RunMode.MULTIRUN)


def test_a_folder_of_ones_own_is_read_each_time(tmp_path: Path):
    path = tmp_path / "experiment" / "mine.yaml"
    path.parent.mkdir()
    for rounds in (3, 4):
        path.write_text(f"# @package _global_\n# Mine\nrounds: {rounds}\n")
        assert composed("experiment=mine", own=tmp_path)[0]["rounds"] == rounds
