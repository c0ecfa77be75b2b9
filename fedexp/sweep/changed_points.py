"""Refuses a sweep whose folders hold other points than its words say now: they would be taken for points never run."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fedexp.config import saved_config
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.run import folders


def refuse_changed(folder: Path, words: Sequence[str], compose: Callable[[], dict[str, Any]]) -> None:
    """Refuses the folder of a point with these words if it was begun as another, or was changed after its end.

    `compose` gives the config of the point. It takes time, so a finished one with the same words goes without.

    Raises:
        ConfigError: its config is another, or its tables end elsewhere than they should.
    """
    if not saved_config.exists(folder):
        return
    from fedexp.run.run import read_finished_metrics  # these bring PyTorch
    from fedexp.run.state.checkpoint import changed_keys

    saved, is_finished = saved_config.read(folder), folders.is_finished(folder)
    same_words = saved.overrides == list(words)
    if not (is_finished and same_words) and (changed := changed_keys(saved.config, compose())):
        raise ConfigError(
            f"{display_path(folder)} was begun as another point: {changed}; put its config.json and multirun.yaml "
            "back, or start a new sweep"
        )
    if is_finished:
        read_finished_metrics(saved.config, folder)
