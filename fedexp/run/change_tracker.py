"""Changes the tracker of runs that have begun or ended: `fedexp resume DIR tracker=mlflow`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra.types import RunMode

from fedexp.config import saved_config
from fedexp.config.compose import Request, make_composer
from fedexp.config.location import conf_dir
from fedexp.config.trust import Trust
from fedexp.core.part import build
from fedexp.parts.tracker.contract import Tracker
from fedexp.run.validate import validate_config

TRACKER_PREFIXES = ("tracker=", "tracker.", "+tracker.")


def tracker_from_words(words: Sequence[str], config_dir: Path | None = None) -> dict[str, Any] | None:
    """The config of the tracker that these words name, the user's own options included; None without words.

    Raises:
        ConfigError: there is no such tracker, or it cannot work here.
    """
    if not words:
        return None
    request = Request(conf_dir(), list(words), config_dir=config_dir)
    composer = make_composer(request)
    config = composer.compose_config(request.config_name, request.overrides, RunMode.RUN)
    return validate_config(composer, config, request.overrides).config["tracker"]


def extend_trust(trust: Trust, node: dict[str, Any] | None) -> Trust:
    """The same trust, extended by the addresses of the tracker that the user typed."""
    if node is None:
        return trust
    tracker: Tracker = build(node, "tracker")
    return replace(trust, addresses=(*trust.addresses, *tracker.named_addresses))


def write_tracker(folder: Path, node: dict[str, Any] | None) -> None:
    """Writes the tracker into the saved config of a run folder; this changes no result."""
    if node is None or not saved_config.exists(folder):
        return
    saved_config.replace_part(folder, "tracker", node)
