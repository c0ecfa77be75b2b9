"""Overrides with the values of the environment variables that they refer to."""

import re
from collections.abc import Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from fedexp.config.override_text import override_text
from fedexp.config.resolvers import MLFLOW

_VARIABLE = re.compile(r"\$\{\s*oc\.env:[^${}]*\}")


def words_with_environment(words: Sequence[str]) -> list[str]:
    """Overrides in which references to environment variables are replaced, except for MLflow's."""
    return [_with_environment(word) if "oc.env" in word and MLFLOW not in word else word for word in words]


def _with_environment(word: str) -> str:
    value = OverridesParser.create().parse_override(word).value()
    if not isinstance(value, str):
        return word  # a list or a choice of several: its reader must write the values

    def read(variable: re.Match[str]) -> str:
        return str(OmegaConf.create({"value": variable[0]}).value)

    return f"{word.partition('=')[0]}={override_text(_VARIABLE.sub(read, value))}"
