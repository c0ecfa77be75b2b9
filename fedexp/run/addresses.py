"""Which addresses a tracker from another's folder may send to: those this user sent to before, or names now."""

from pathlib import Path
from typing import Any

from fedexp.config.trust import Trust
from fedexp.core.errors import ConfigError
from fedexp.core.part import build
from fedexp.files.atomic import display_path
from fedexp.parts.tracker.contract import Tracker


def refuse_unknown(config: dict[str, Any], folder: Path, trust: Trust) -> None:
    """Refuses the config of a folder whose tracker would send to an address that was never used from here.

    Raises:
        ConfigError: names the address, and how to allow it.
    """
    if trust.composed or "tracker" not in config:
        return
    tracker: Tracker = build(config["tracker"], "tracker")
    for address in tracker.addresses(folder):
        if not trust.sends_to(address):
            raise ConfigError(
                f"the tracker of {display_path(folder)} sends to {address}, where nothing was ever sent from here; if "
                "you know it, name it again (such as tracker=mlflow tracker.uri=...), otherwise add tracker=none"
            )
