"""Derives a sweep point's config from another point's whose overrides differ in plain values only.

To compose a config takes several times as long as to copy it. A value of a key that is there changes nothing but this
key, and what is noted of the words.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf


class PointComposer:
    """Composes the points of a sweep by Hydra's loader, or copies them from the last one that it composed."""

    def __init__(self, loader: Any) -> None:
        self.loader, self.groups = loader, set(loader.list_groups(""))
        self.last: tuple[list[Override], DictConfig] | None = None
        self.about_hydra: list[str] = []  # of the last one

    def compose_point(self, config: DictConfig, words: list[str]) -> DictConfig:
        """The config of the point of a sweep with these words, as Hydra composes it."""
        parsed, about_hydra = OverridesParser.create().parse_overrides(words), list(config.hydra.overrides.hydra)
        if self.last is not None and self.about_hydra == about_hydra:
            changed = self._find_changes(*self.last, parsed)
            if changed is not None:
                point_config = copy_with_values(self.last[1], parsed, changed)
                OmegaConf.copy_cache(from_config=config, to_config=point_config)
                return point_config
        base_config = self.loader.load_sweep_config(config, words)
        self.last, self.about_hydra = (parsed, deepcopy(base_config)), about_hydra
        return base_config

    def _find_changes(
        self, before: Sequence[Override], config: DictConfig, now: Sequence[Override]
    ) -> list[Override] | None:
        """The overrides whose values differ; None unless all of them set plain values of plain keys."""
        if len(before) != len(now):
            return None
        changed = [new for old, new in zip(before, now, strict=True) if old.input_line != new.input_line]
        same_keys = all(old.key_or_group == new.key_or_group for old, new in zip(before, now, strict=True))
        keys = [word.key_or_group for word in now]
        return changed if same_keys and all(self._is_plain_change(new, keys, config) for new in changed) else None

    def _is_plain_change(self, word: Override, keys: Sequence[str], config: DictConfig) -> bool:
        key = word.key_or_group
        related = [
            other_key
            for other_key in keys
            if f"{other_key}.".startswith(f"{key}.") or f"{key}.".startswith(f"{other_key}.")
        ]
        return (
            word.type == OverrideType.CHANGE
            and word.package is None
            and key not in self.groups
            and not key.startswith("hydra")
            and len(related) == 1  # itself
            and isinstance(word.value(), int | float | str | None)
            and not OmegaConf.is_config(OmegaConf.select(config, key))
        )


def copy_with_values(config: DictConfig, words: Sequence[Override], changed: Sequence[Override]) -> DictConfig:
    """A copy of a config with the changed values, which records `words` as its overrides."""
    result, naming = deepcopy(config), config.hydra.job.config.override_dirname
    for word in changed:
        OmegaConf.update(result, word.key_or_group, word.value(), merge=True)
    task = [word for word in words if not word.is_hydra_override()]
    result.hydra.overrides.task = [word.input_line for word in task]
    named = sorted(str(word.input_line) for word in task if word.key_or_group not in naming.exclude_keys)
    result.hydra.job.override_dirname = naming.item_sep.join(named).replace("=", naming.kv_sep)  # as Hydra names it
    return result
