"""What is noted of a config in a run folder, without passwords; and only plain values are read back."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from fedexp.config import saved_config
from fedexp.config.compose import resolve_config
from fedexp.core.errors import ConfigError

SECRET = "http://me:p@ssw0rd@host:5000"


def composed(uri: str | None = None, **keys: Any) -> DictConfig:
    hydra: dict[str, Any] = {
        "runtime": {"output_dir": "???", "choices": {"tracker": "mlflow", "attack": None}},
        "overrides": {"task": ["seed=1", f"tracker.uri={uri}"]},
        "job": {"override_dirname": f"seed=1,tracker.uri={uri}"},
    }
    tracker = {"uri": uri}
    return OmegaConf.create({"_target_": "x.Y", "seed": 1, "tracker": tracker, **keys, "hydra": hydra})


def save(folder: Path, config: DictConfig) -> None:
    saved_config.save(folder, config, resolve_config(config))


def test_what_is_saved_is_read(tmp_path: Path):
    save(tmp_path, composed(rounds="${seed}", limit=math.inf, words=["${seed}", "é"], name="\\${seed}"))
    saved = saved_config.read(tmp_path)
    assert saved.config["rounds"] == 1
    assert saved.config["limit"] == math.inf
    assert saved.config["words"] == [1, "é"]
    assert saved.raw_config["rounds"] == "${seed}"
    assert saved.raw_config["words"] == ["${seed}", "é"]
    assert saved.raw_config["tracker"] == {"uri": None}
    assert saved.choices == {"tracker": "mlflow", "attack": None}
    assert saved.overrides == ["seed=1", "tracker.uri=None"]


def test_a_config_is_saved_once_and_one_of_other_words_is_refused(tmp_path: Path):
    mine, other = composed("http://me:p@ssw0rd@host"), composed("http://host:1")
    saved_config.save_once(tmp_path, mine, resolve_config(mine))
    written = (tmp_path / "config.json").stat().st_mtime_ns
    saved_config.save_once(tmp_path, mine, resolve_config(mine))
    told = "must be a run with tracker.uri=http://host:1, got one with tracker.uri=http://host; move it away"
    with pytest.raises(ConfigError, match=told):
        saved_config.save_once(tmp_path, other, resolve_config(other))
    assert (tmp_path / "config.json").stat().st_mtime_ns == written


def test_no_password_is_noted(tmp_path: Path):
    save(tmp_path, composed(uri=SECRET, rounds="${seed}"))
    saved_config.replace_part(tmp_path, "tracker", {"uri": SECRET})
    paths = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(paths) == 4
    for path in paths:
        text = path.read_text()
        assert "p@ss" not in text, path
        assert "//me" not in text, path
        assert "http://host:5000" in text, path
    assert saved_config.read(tmp_path).raw_config["rounds"] == "${seed}", "references stay"


def test_the_machine_says_where_data_lies_and_what_mlflow_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from fedexp.config.resolvers import register_resolvers

    register_resolvers()
    monkeypatch.setenv("FEDEXP_DATA", "/there")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    words = {"data_dir": "${data_root:}", "path": "${data_dir}", "cores": "${usable_cores:}", "own": "/there"}
    save(tmp_path, composed(uri="${oc.env:MLFLOW_TRACKING_URI,null}", **words))
    monkeypatch.setenv("FEDEXP_DATA", "/here")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", SECRET)
    config = saved_config.read_config(tmp_path, saved_config.Trust(composed=True))
    assert (config["data_dir"], config["path"], config["own"]) == ("/here", "/here", "/there")
    assert config["tracker"]["uri"] == "http://host:5000"


RIGHT = {"config": {"_target_": "x.Y"}, "references": {}, "choices": {}, "overrides": []}
DEEP: Any = 1
for _ in range(50):
    DEEP = {"a": DEEP}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"config": [1]}, "must have config as a run saves them, got [1]"),
        ({"config": {"seed": 1}}, "must have config as a run saves them, got {'seed': 1}"),
        ({"config": {"_target_": 3}}, "must have config as a run saves them"),
        ({"config": {"_target_": "x.Y", "a": DEEP}}, "must be at most 40 levels deep"),
        ({"config": {"_target_": "x.Y", "a": math.nan}}, "cannot be read as JSON: NaN is not a JSON number"),
        ({"config": {"_target_": "x.Y", "a": 10**30}}, "a whole number must have at most 20 digits, got 31"),
        ({"config": {"_target_": "x.Y", "a": "\ud800"}}, "cannot be read as JSON: "),
        ({"references": None}, "must have references as a run saves them, got None"),
        ({"references": {"seed": "3"}}, "must have references as a run saves them, got {'seed': '3'}"),
        ({"choices": {"model": 3}}, "must have choices as a run saves them"),
        ({"overrides": "seed=1"}, "must have overrides as a run saves them"),
        ({"overrides": [1]}, "must have overrides as a run saves them"),
    ],
)
def test_what_no_run_saves_is_refused_in_one_line(tmp_path: Path, change: dict[str, Any], complaint: str):
    (tmp_path / "config.json").write_text(json.dumps(RIGHT | change))
    with pytest.raises(ConfigError) as refused:
        saved_config.read(tmp_path)
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_key_that_stands_twice_is_refused(tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps(RIGHT).replace('"choices"', '"choices": {}, "choices"'))
    with pytest.raises(ConfigError, match="cannot be read as JSON: a key may stand once, got 'choices' twice"):
        saved_config.read(tmp_path)
