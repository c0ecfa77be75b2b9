"""The flags of `fedexp run`, before, between or after the overrides: Hydra's own, less those for app authors."""

import argparse
import re
from collections.abc import Callable, Sequence
from typing import NoReturn

from fedexp.core.errors import ConfigError, nearest

FLAGS = ("--help", "--multirun", "--cfg", "--resolve", "--package", "--info", "--config-dir", "--config-name")
TOPICS = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        said = re.sub(r"^argument (--[a-z-]+)[^:]*:", r"\1", message)
        raise ConfigError(f"{said}; see fedexp run --help")


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Reads flags and overrides; refuses what contradicts itself."""
    parser = _parser()
    flags, unknown = parser.parse_known_intermixed_args(list(words))
    if unknown:
        raise ConfigError(f"unknown flag {unknown[0]}; {nearest(unknown[0], FLAGS)}")
    if sum((flags.run, flags.multirun, flags.cfg is not None, flags.info is not None)) > 1:
        raise ConfigError("only one of --run, --multirun, --cfg and --info can be given")
    if flags.cfg is None and (flags.resolve or flags.package):
        raise ConfigError(f"{'--resolve' if flags.resolve else '--package'} needs --cfg; write --cfg job too")
    return flags


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="fedexp run", add_help=False)
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--help", "-h", action="store_true")
    parser.add_argument("--run", "-r", action="store_true")
    parser.add_argument("--multirun", "-m", action="store_true")
    parser.add_argument("--cfg", "-c", type=_one_of("job", "hydra", "all"))
    parser.add_argument("--resolve", action="store_true")
    parser.add_argument("--package", "-p")
    parser.add_argument("--info", "-i", nargs="?", const="all", type=_one_of(*TOPICS))
    parser.add_argument("--config-name", "-cn", default="config")
    parser.add_argument("--config-dir", "-cd")
    return parser


def _one_of(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise argparse.ArgumentTypeError(f"must be one of {', '.join(allowed)}, got {text}")
        return text

    return read
