"""`fedexp verify DIR [--rounds K] [--seed S] [--all]`: the words read, the work left to `fedexp.verify`."""

import sys
from pathlib import Path

from fedexp.commands.trusting import split
from fedexp.core import logs
from fedexp.core.errors import ConfigError
from fedexp.core.exits import FAILED, Stopped
from fedexp.core.files import shown
from fedexp.core.own_files import refuse_strange
from fedexp.core.torchrun import under_torchrun
from fedexp.run import folders

ROUNDS = 3


def act(words: list[str]) -> int:
    """Replays rounds of a run folder; ends with exit code 1 where something is not as it was written."""
    trust, left = split(words)
    folder, count, seed = read(left)
    if under_torchrun():
        raise ConfigError("verify starts its workers itself; run it without torchrun")
    with logs.kept():
        logs.silence()
        from fedexp.verify.verify import verify

        complaints = verify(folder, count, seed, _say, trust)
    if complaints:
        raise Stopped(FAILED, _summed(complaints))
    return 0


def _summed(complaints: list[str]) -> str:
    others = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
    return f"{complaints[0]}{others}"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def read(words: list[str]) -> tuple[Path, int | None, int]:
    """Splits the words into the folder, the number of rounds to replay (None: all), and the seed that draws them."""
    numbers = {"--rounds": ROUNDS, "--seed": 0}
    places: list[str] = []
    left = iter(words)
    for word in left:
        key, equal, value = word.partition("=")
        if key in numbers:
            numbers[key] = _number(key, value if equal else next(left, ""), least=int(key == "--rounds"))
        elif word.startswith("-") and word != "--all":
            raise ConfigError(f"unknown flag {word}; verify knows --rounds K, --seed S and --all")
        elif word != "--all":
            places.append(word)
    if len(places) != 1:
        raise ConfigError(f"verify needs one run folder, got {len(places)}; e.g. fedexp verify outputs/latest")
    return _folder(Path(places[0])), None if "--all" in words else numbers["--rounds"], numbers["--seed"]


def _folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; fedexp verify needs a run folder, e.g. outputs/latest")
    if folders.is_sweep(folder):
        raise ConfigError(f"{shown(folder)} is a sweep; verify one of its points, e.g. {shown(folder / '0')}")
    refuse_strange(folder)
    return folder


def _number(key: str, text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise ConfigError(f"{key} must be an integer >= {least}, got {text or 'none'}")
    return int(text)
