"""No run is called by the name of an algorithm whose parts it does not have."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hostile import refusal
from omegaconf import DictConfig, OmegaConf

from fedexp import cli
from fedexp.config import catalog
from fedexp.config.bundles import refuse_replaced_parts
from fedexp.config.location import conf_dir
from fedexp.config.option_names import option_names
from fedexp.core.errors import ConfigError

CONF = conf_dir()
ALGORITHMS = {name: catalog.choices(CONF / "algorithm" / f"{name}.yaml") for name in catalog.options(CONF, "algorithm")}
REPLACED = [
    (name, group, option)
    for name, parts in ALGORITHMS.items()
    for group, chosen in parts.items()
    for option in catalog.options(CONF, group)
    if option != chosen
]


def composed(choices: dict[str, Any], *folders: Path) -> DictConfig:
    sources = [{"schema": "pkg", "path": "hydra.conf"}]  # Hydra's own, a package and no folder
    sources += [{"schema": "file", "path": str(folder)} for folder in (*folders, CONF)]
    return OmegaConf.create({"hydra": {"runtime": {"choices": choices, "config_sources": sources}}})


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_whole_algorithm_passes_and_has_its_name(name: str):
    chosen = {**catalog.defaults(CONF), **ALGORITHMS[name], "algorithm": name}
    refuse_replaced_parts(composed(chosen))
    written = {group: catalog.part(CONF, group, option) for group, option in chosen.items() if group != "algorithm"}
    assert option_names(written, chosen)["algorithm"] == name


def test_every_other_part_is_refused_and_takes_the_name(monkeypatch: pytest.MonkeyPatch):
    assert len(REPLACED) > 500
    monkeypatch.setattr(catalog, "part", cache(catalog.part))  # thousands of runs of the same few hundred files
    config = composed({})
    for name, group, option in REPLACED:
        chosen = {**catalog.defaults(CONF), **ALGORITHMS[name], "algorithm": name, group: option}
        config.hydra.runtime.choices = chosen
        with pytest.raises(
            ConfigError, match=f"^algorithm={name} chooses {group}=.*, but the run has {group}={option}"
        ):
            refuse_replaced_parts(config)
        written = {group: catalog.part(CONF, group, option) for group, option in chosen.items() if group != "algorithm"}
        assert "algorithm" not in option_names(written, chosen), (name, group, option)


def test_an_algorithm_of_ones_own_is_held_to_its_parts(tmp_path: Path):
    path = tmp_path / "algorithm" / "mine.yaml"
    path.parent.mkdir()
    path.write_text("# @package _global_\ndefaults:\n  - override /local: adam\n")
    refuse_replaced_parts(composed({"algorithm": "mine", "local": "adam"}, tmp_path))
    with pytest.raises(ConfigError, match="algorithm=mine chooses local=adam, but the run has local=sgd"):
        refuse_replaced_parts(composed({"algorithm": "mine", "local": "sgd"}, tmp_path))


def test_a_folder_that_is_called_like_hydras_package_is_not_looked_into(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    planted = tmp_path / "hydra.conf" / "algorithm" / "scaffold.yaml"
    planted.parent.mkdir(parents=True)
    planted.write_text("defaults:\n  - override /local: adam\n")
    refuse_replaced_parts(composed({**catalog.defaults(CONF), **ALGORITHMS["scaffold"], "algorithm": "scaffold"}))


@pytest.mark.parametrize("command", [("run",), ("run", "-m"), ("plan",)])
def test_every_command_refuses_it_before_the_run(command: tuple[str, ...], capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = refusal(capsys, *command, "algorithm=scaffold", "local=adam")
    assert said.endswith(
        "algorithm=scaffold chooses local=scaffold, but the run has local=adam; leave one of them out, or name the "
        "parts: aggregator.weighting=uniform local=adam\n"
    )
    assert not (tmp_path / "outputs").exists()


def test_a_value_that_makes_another_algorithm_of_it_is_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert refusal(capsys, "run", "algorithm=fedsgd", "local.batch_size=20").endswith(
        "algorithm=fedsgd is local=full_batch_step, which has local.batch_size=full, but the run has "
        "local.batch_size=20; leave that out, or name the parts: local=full_batch_step selector=all aggregator=fedavg "
        "server_optimizer=replace\n"
    )
    assert cli.main(["run", "-q", "algorithm=fedsgd", "local.lr=0.7", "rounds=1", "pictures=false"]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("algorithm=ditto",), "got evaluation.personal_fraction=0.2 (set by algorithm=ditto); add"),
        (("algorithm=ditto", "evaluation.personal_fraction=0.3"), "got evaluation.personal_fraction=0.3; add"),
        (("algorithm=ditto", "evaluation.personal_fraction=0.2"), "got evaluation.personal_fraction=0.2; add"),
        (("evaluation.personal_fraction=0.2",), "got evaluation.personal_fraction=0.2; add"),
    ],
)
def test_a_value_that_nobody_typed_is_said_to_be_the_bundles(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
):
    assert said in refusal(capsys, "run", *words, "evaluation.own_test=true")


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("algorithm=qfedavg", "pacing=buffered"), "aggregator=fedavg instead of algorithm=qfedavg"),
        (("aggregator=qfedavg", "evaluation.client_losses=exact", "pacing=buffered"), "aggregator=fedavg"),
        (("algorithm=scaffold", "pacing=buffered"), "local=sgd instead of algorithm=scaffold"),
        (("aggregator=secure_mean", "codec=float16"), "codec=none"),
    ],
)
def test_a_part_to_use_is_said_to_go_instead_of_the_algorithm(words: tuple[str, ...], advice: str, capsys):
    """Else whoever follows the advice is told that the algorithm chooses another part."""
    assert refusal(capsys, "run", *words).endswith(f"; use {advice}\n")
    part, _, algorithm = advice.partition(" instead of ")
    remaining = [word for word in words if word != algorithm and word.partition("=")[0] != part.partition("=")[0]]
    assert cli.main(["run", "-q", *remaining, part, "rounds=1", "pictures=false"]) == 0
