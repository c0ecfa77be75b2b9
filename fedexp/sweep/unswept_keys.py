"""A config that is made to be swept, run without -m: Hydra runs one point of it without a word."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import cast

from omegaconf import DictConfig, OmegaConf

from fedexp.config.override_text import key_of

GROUP = "experiment"


def warn_of_unswept_keys(config: DictConfig, words: Sequence[str]) -> None:
    """Says on stderr that a composed config of one run is a sweep, where words do not choose a point of it."""
    sys.stderr.write("".join(f"fedexp: {note}\n" for note in describe_unswept_keys(config, words)))


def describe_unswept_keys(config: DictConfig, words: Sequence[str]) -> Iterator[str]:
    """A sentence where the sweep of a config varies keys that no word sets."""
    typed = set(map(key_of, words))
    params = cast(dict[str, object], OmegaConf.to_container(config.hydra.sweeper, resolve=False)).get("params") or {}
    swept = [str(key) for key in cast(dict[str, object], params) if key not in typed]
    if swept:
        option = config.hydra.runtime.choices.get(GROUP)
        name = f"{GROUP}={option}" if option else "this config"
        command = shlex.join(["fedexp", "run", "-m", *words])
        yield f"{name} is a sweep over {', '.join(swept)}, of which this is one point; for all of it: {command}"
