"""Another tracker for what was begun or has ended: `fedexp resume DIR tracker=mlflow`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.types import RunMode

from fedexp.config import noted
from fedexp.config.compose import Request, start
from fedexp.config.location import conf_dir
from fedexp.run.checked import checked

WORDS = ("tracker=", "tracker.", "+tracker.")


def chosen(words: Sequence[str]) -> dict[str, Any] | None:
    """The tracker's node that these words ask for; None where they ask for none.

    Raises:
        ConfigError: there is no such tracker, or it cannot work here.
    """
    if not words:
        return None
    request = Request(conf_dir(), list(words))
    composer = start(request)
    config = composer.compose_config(request.config_name, request.overrides, RunMode.RUN)
    return checked(composer, config, request.overrides)["tracker"]


def put(folder: Path, node: dict[str, Any] | None) -> None:
    """Writes the tracker into the config of a run folder, where it changes no result."""
    if node is None or not noted.is_there(folder):
        return
    noted.put(folder, "tracker", node)
