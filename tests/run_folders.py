"""Run folders written by hand, with just the files that a run leaves."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from omegaconf import OmegaConf

from fedexp.config.resolvers import register_resolvers
from fedexp.core.nested import flatten_keys

CHOICES = {"experiment": None, "algorithm": None, "fleet": "none", "selector": "random", "hydra/output": "default"}
CONFIG = {
    "_target_": "fedexp.simulation.setup.experiment.Experiment",
    "rounds": 4,
    "data_dir": "${data_root:}",
    "scenario": {"clients": 4, "participants": 2},
    "evaluation": {"roa": [0.5, 0.8, 0.99], "toa": "${evaluation.roa}"},
    "selector": {"_target_": "fedexp.parts.selector.random.Random", "count": "${scenario.participants}"},
    "engine": {"workers": 1},
}
SUMMARY = {
    "clients": 4,
    "versions": {"fedexp": "0.1.0", "torch": "2.9"},
    "git": {"commit": "0123456789abcdef", "dirty": True},
    "device": "x86_64 CPU",
}
MakeRun = Callable[..., Path]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Writes a run folder below `tmp_path`."""
    return writer(tmp_path)


def writer(place: Path) -> MakeRun:
    """Writes run folders below a place; `metrics` adds or replaces columns, `keys` sets dotted config keys."""

    def make(
        name: str,
        seed: int = 0,
        accuracy: Sequence[float | None] = (0.4, 0.6, 0.8, 0.9),
        metrics: Mapping[str, Any] | None = None,
        choices: Mapping[str, str] | None = None,
        keys: Mapping[str, Any] | None = None,
        overrides: Sequence[str] = (),
        finished: bool = True,
    ) -> Path:
        folder = place / name
        folder.mkdir(parents=True)
        rounds = range(1, len(accuracy) + 1)
        columns = {
            "round": rounds,
            "test_loss": [4.0 / number for number in rounds],
            "test_accuracy": accuracy,
            "participants": 2,
            "host_s": [0.5 * number for number in rounds],
            "sim_s": None,
        } | dict(metrics or {})
        kept = {column: values for column, values in columns.items() if values is not ...}
        pd.DataFrame(kept).to_csv(folder / "metrics.csv", index=False)
        taken = pd.DataFrame({"round": [r for r in rounds for _ in range(2)], "client": [0, 1] * len(accuracy)})
        taken.to_csv(folder / "clients.csv", index=False)
        (folder / "federation.csv").write_text("client,examples,cat,dog\n0,3,1,2\n1,3,2,1\n2,1,0,1\n3,1,1,0\n")
        _write_config(folder, {"seed": seed, **(keys or {})}, {**CHOICES, **(choices or {})}, overrides)
        if finished:
            (folder / "summary.json").write_text(json.dumps(SUMMARY))
        return folder

    return make


@pytest.fixture
def method(make_run: MakeRun, tmp_path: Path) -> MakeRun:
    """A folder with a run a seed of one selector; `finals` are their last accuracies, `summary` joins theirs."""

    def make(selector: str, finals: Sequence[float], name: str = "", summary: dict | None = None, **given: Any) -> Path:
        for seed, last in enumerate(finals):
            accuracy, choices = (0.4, 0.6, 0.7, last), {"selector": selector}
            folder = make_run(f"{name or selector}/{seed}", seed=seed, accuracy=accuracy, choices=choices, **given)
            told = {"data_sha256": "d", "split_sha256": f"s{seed}", **(summary or {})}
            known = json.loads((folder / "summary.json").read_text())
            (folder / "summary.json").write_text(json.dumps(known | told))
        return tmp_path / (name or selector)

    return make


def change_config(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Changes the config in the `config.json` of a run folder."""
    content = json.loads((folder / "config.json").read_text())
    change(content["config"])
    (folder / "config.json").write_text(json.dumps(content))


def write_config(
    folder: Path,
    config: Mapping[str, Any],
    choices: Mapping[str, Any] | None = None,
    overrides: Sequence[str] = (),
    references: Mapping[str, str] | None = None,
) -> None:
    """Writes a `config.json`, and what lies in `.hydra/` beside it."""
    content = {"config": config, "references": references or {}, "choices": choices or {}, "overrides": [*overrides]}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(content, sort_keys=True))
    (folder / ".hydra").mkdir()
    hydra = {"hydra": {"runtime": {"choices": dict(choices or {})}}}
    for name, node in (("config", dict(config)), ("hydra", hydra), ("overrides", [*overrides])):
        (folder / ".hydra" / f"{name}.yaml").write_text(yaml.safe_dump(node))


def _write_config(folder: Path, keys: Mapping[str, Any], choices: Mapping[str, Any], overrides: Sequence[str]) -> None:
    config = json.loads(json.dumps(CONFIG))
    config["selector"]["_target_"] = f"fedexp.parts.selector.{choices['selector']}.Selector"
    for key, value in keys.items():
        *path, last = key.split(".")
        node = config
        for step in path:
            node = node.setdefault(step, {})
        node[last] = value
    register_resolvers()
    resolved: Any = OmegaConf.to_container(OmegaConf.create(config), resolve=True)
    references = {key: text for key, text in flatten_keys(config).items() if "${" in str(text)}
    write_config(folder, resolved, choices, overrides, references)
