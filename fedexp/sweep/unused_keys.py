"""A key of the scenario that is typed although no chosen part follows it: the run would be the same without it."""

import sys
from collections.abc import Iterator, Sequence

from omegaconf import DictConfig

from fedexp.config.compose import raw_config
from fedexp.config.override_text import key_of
from fedexp.core.nested import flatten_keys
from fedexp.report.read.idle import SOURCES, is_unused_source


def warn_of_unused_keys(config: DictConfig, words: Sequence[str]) -> None:
    """Says on stderr which typed keys of a composed config do nothing."""
    sys.stderr.write("".join(f"fedexp: {note}\n" for note in describe_unused_keys(config, words)))


def describe_unused_keys(config: DictConfig, words: Sequence[str]) -> Iterator[str]:
    """A sentence for each typed key that no part follows."""
    values = {key: value for key, value in flatten_keys(raw_config(config)).items() if not key.startswith("hydra.")}
    for key in dict.fromkeys(map(key_of, words)):
        if is_unused_source(values, key):
            value = values.get(SOURCES[key])
            suffix = "" if value is None else f" ({SOURCES[key]}={value})"
            yield f"{key} does nothing: no chosen part follows it{suffix}"
