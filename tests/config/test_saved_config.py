"""What is noted of a config in a run folder: whole, complete, without passwords."""

from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from fedexp.config import saved_config

SECRET = "http://me:p@ss/w0rd@host:5000".replace("/w0rd", "w0rd")


def composed(seed: int = 1, uri: str | None = None) -> DictConfig:
    hydra: dict[str, Any] = {
        "runtime": {"output_dir": "???", "choices": {"tracker": "mlflow"}},
        "overrides": {"task": [f"seed={seed}", f"tracker.uri={uri}"]},
        "job": {"override_dirname": f"seed={seed},tracker.uri={uri}"},
    }
    return OmegaConf.create({"seed": seed, "rounds": "${seed}", "tracker": {"uri": uri}, "hydra": hydra})


def content(folder: Path) -> dict[str, str]:
    return {path.stem: path.read_text() for path in (folder / ".hydra").iterdir()}


@pytest.mark.parametrize("name", saved_config.FILES)
@pytest.mark.parametrize("empty", [True, False])
def test_what_is_missing_is_written(tmp_path: Path, name: str, empty: bool):
    saved_config.save(tmp_path, composed())
    before, path = content(tmp_path), tmp_path / ".hydra" / f"{name}.yaml"
    assert set(before) == set(saved_config.FILES)
    path.write_text("") if empty else path.unlink()
    assert not saved_config.is_complete(tmp_path)
    saved_config.save(tmp_path, composed())
    assert content(tmp_path) == before
    assert saved_config.is_complete(tmp_path)


def test_what_is_there_stays_unless_the_config_was_never_written(tmp_path: Path):
    saved_config.save(tmp_path, composed(seed=1))
    saved_config.save(tmp_path, composed(seed=2))
    assert saved_config.overrides(tmp_path)[0] == "seed=1"
    (tmp_path / ".hydra" / "config.yaml").unlink()
    saved_config.save(tmp_path, composed(seed=2))
    assert (saved_config.overrides(tmp_path)[0], saved_config.read_raw(tmp_path)["seed"]) == ("seed=2", 2)


def test_no_password_is_noted(tmp_path: Path):
    saved_config.save(tmp_path, composed(uri=SECRET))
    saved_config.replace_part(tmp_path, "tracker", {"uri": SECRET})
    for name, text in content(tmp_path).items():
        assert "p@ss" not in text, name
        assert "//me" not in text, name
        assert "http://host:5000" in text, name
    assert saved_config.read_raw(tmp_path)["rounds"] == "${seed}", "interpolations stay"
