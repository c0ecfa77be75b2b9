"""`fedexp search`: the words read, the work left to `fedexp.search`."""

import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from fedexp.config.trust import NOBODY, Trust, remember
from fedexp.core.errors import ConfigError
from fedexp.run import folders

FLAGS = ("--trials", "--jobs", "--seed", "--out", "--config-dir", "--no-pruning")


def act(words: list[str]) -> int:
    """Begins a search and works on it to its end."""
    flags, overrides = read(words)
    from fedexp.search.search import Search, conduct, save
    from fedexp.sweep.launchers.contract import needed

    needed("optuna", "sweep", "fedexp search")
    own = str(Path(flags["--config-dir"]).absolute()) if flags["--config-dir"] else None
    search = Search(tuple(overrides), flags["--trials"], flags["--seed"], not flags["--no-pruning"], own)
    search.check()
    dated = flags["--out"] is None
    place = folders.OUTPUTS / "search" / datetime.now().strftime("%Y-%m-%d/%H-%M-%S") if dated else flags["--out"]
    folder = folders.claim(Path(place), dated=dated)
    folders.link_latest(folder)
    save(search, folder)
    remember(config_dir=Path(own) if own else None)
    sys.stdout.write(conduct(folder, flags["--jobs"], Trust(composed=True)))
    return 0


def resume(folder: Path, words: list[str], trust: Trust = NOBODY) -> int:
    """Works on a search that was begun, beside others that may."""
    from fedexp.run import retrack

    flags, overrides = read(words)
    tracker = [word for word in overrides if word.startswith(retrack.WORDS)]
    if len(tracker) < len(overrides) or {word.partition("=")[0] for word in words} & (set(FLAGS) - {"--jobs"}):
        raise ConfigError("a search goes on as it began; only --jobs and tracker=... may be given anew")
    from fedexp.search.search import conduct

    node = retrack.chosen(tracker, trust.config_dir)
    sys.stdout.write(conduct(folder, flags["--jobs"], retrack.trusting(trust, node), node))
    return 0


def read(words: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Splits the words into flags with their values, and overrides."""
    flags: dict[str, Any] = {"--trials": 20, "--jobs": 1, "--seed": 0, "--out": None, "--config-dir": None}
    flags["--no-pruning"] = False
    overrides = []
    left = iter(words)
    for word in left:
        key, equal, value = word.partition("=")
        if not word.startswith("-"):
            overrides.append(word)
        elif key not in flags:
            raise ConfigError(f"unknown flag {word}; search knows {', '.join(FLAGS)}")
        elif key == "--no-pruning":
            flags[key] = True
        else:
            flags[key] = _value(key, value if equal else next(left, ""))
    return flags, overrides


def _value(key: str, text: str) -> Any:
    if key in ("--out", "--config-dir"):
        if not text:
            raise ConfigError(f"{key} must name a folder")
        return text
    least = 0 if key == "--seed" else 1
    if not text.isdecimal() or int(text) < least:
        raise ConfigError(f"{key} must be a whole number >= {least}, got {text or 'none'}")
    return int(text)
