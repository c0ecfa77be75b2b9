"""Configs of points that are copied from another point's are those that Hydra composes."""

from collections.abc import Iterator

import pytest
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf

from fedexp.config.compose import Composer, Request, make_composer
from fedexp.config.location import conf_dir
from fedexp.sweep.points import compose

WORDS = [
    ["experiment=smoke", "seed=0", "local.lr=0.1", "selector=random", "evaluation.roa=null", "dataset.shape=[8]"],
    ["experiment=smoke", "seed=1", "local.lr=0.1", "selector=random", "evaluation.roa=null", "dataset.shape=[8]"],
    ["experiment=smoke", "seed=2", "local.lr=1e-3", "selector=random", "evaluation.roa=null", "dataset.shape=[8]"],
    [
        "experiment=smoke",
        "seed=2",
        "local.lr=${scenario.local_lr}",
        "selector=random",
        "evaluation.roa=null",
        "rounds=3",
    ],
]
TURNED = {
    "an option": (["selector=random", "seed=0"], ["selector=afl", "seed=0"]),
    "a list": (["evaluation.roa=null"], ["evaluation.roa=[0.5]"]),
    "a mapping": (["evaluation={every: 1}"], ["evaluation={every: 2}"]),
    "an added key": (["+mine=1"], ["+mine=2"]),
    "a removed key": (["~stop", "seed=0"], ["seed=0", "~stop"]),
    "a key below another": (
        ["scenario={clients: 5}", "scenario.clients=6"],
        ["scenario={clients: 5}", "scenario.clients=7"],
    ),
    "more words": (["seed=0"], ["seed=0", "rounds=3"]),
    "other keys": (["seed=1"], ["rounds=1"]),
    "Hydra's own": (["seed=1", "hydra.job.chdir=false"], ["seed=1", "hydra.job.chdir=true"]),
}


@pytest.fixture
def sweep() -> Iterator[tuple[Composer, DictConfig]]:
    request = Request(conf_dir(), ["seed=0,1", "hydra.sweep.subdir='${hydra.job.override_dirname}'"])
    composer = make_composer(request)
    yield composer, compose(composer, request)
    GlobalHydra.instance().clear()


def full(composer: Composer, config: DictConfig, words: list[str]) -> DictConfig:
    return composer.config_loader.load_sweep_config(config, words)


def text(config: DictConfig) -> str:
    return OmegaConf.to_yaml(config)


def test_values_are_laid_into_a_copy(sweep: tuple[Composer, DictConfig], monkeypatch: pytest.MonkeyPatch):
    composer, config = sweep
    wanted = [full(composer, config, words) for words in WORDS]
    composed, load = [], composer.points.loader.load_sweep_config
    monkeypatch.setattr(
        composer.points.loader, "load_sweep_config", lambda *given: composed.append(given[1]) or load(*given)
    )
    found = [composer.points.compose_point(config, words) for words in WORDS]
    assert composed == [WORDS[0], WORDS[3]]
    assert list(map(text, found)) == list(map(text, wanted))
    for own, other in zip(found, wanted, strict=True):
        assert own == other
        assert OmegaConf.is_struct(own)
        assert own.hydra.sweep.subdir == other.hydra.sweep.subdir


def test_a_copy_is_a_points_own(sweep: tuple[Composer, DictConfig]):
    composer, config = sweep
    first = composer.points.compose_point(config, ["seed=0"])
    first.rounds = 77
    second = composer.points.compose_point(config, ["seed=1"])
    second.rounds = 78
    assert composer.points.compose_point(config, ["seed=2"]).rounds == 30


@pytest.mark.parametrize("words", TURNED.values(), ids=list(TURNED))
def test_all_else_is_composed_anew(sweep: tuple[Composer, DictConfig], words: tuple[list[str], list[str]]):
    composer, config = sweep
    for each in words:
        assert text(composer.points.compose_point(config, each)) == text(full(composer, config, each))
    assert composer.points.last is not None
    assert [one.input_line for one in composer.points.last[0]] == words[1]


def test_a_key_that_is_not_there_is_refused(sweep: tuple[Composer, DictConfig]):
    composer, config = sweep
    composer.points.compose_point(config, ["seed=0"])
    with pytest.raises(Exception, match="none_such"):
        composer.points.compose_point(config, ["none_such=0"])


def test_what_is_said_of_hydra_counts(sweep: tuple[Composer, DictConfig]):
    composer, config = sweep
    composer.points.compose_point(config, ["seed=0"])
    config.hydra.overrides.hydra.append("hydra.sweep.dir=elsewhere")
    assert composer.points.compose_point(config, ["seed=1"]).hydra.sweep.dir == "elsewhere"
