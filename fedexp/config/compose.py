"""Composing: from the words behind `fedexp run` to plain, checked configs, before anything is loaded or made."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hydra import version
from hydra._internal.callbacks import Callbacks
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.utils import configure_log
from hydra.types import HydraContext, RunMode, TaskFunction
from omegaconf import DictConfig, OmegaConf

from fedexp.config import launchers, log_settings, noted, one_at_a_time, roles
from fedexp.config.hydra_errors import COMPOSING, explain, searched
from fedexp.config.one_at_a_time import OneAtATime
from fedexp.config.resolvers import register_resolvers
from fedexp.config.trust import NOBODY, Trust
from fedexp.core.errors import ConfigError
from fedexp.core.files import shown
from fedexp.core.moved import renewed
from fedexp.core.nested import walk
from fedexp.core.passwords import hold, without_passwords


@dataclass
class Request:
    """What was asked on the command line: the overrides, and where configs come from."""

    conf: Path
    overrides: list[str]
    config_name: str = "config"
    config_dir: Path | None = None
    typed: bool = True  # by the user; else a folder says it


class Composer(Hydra):
    """Hydra that composes once, complains readably, and lets the composed config be corrected before its use."""

    composed: DictConfig | None = None
    typed = True

    def compose_config(
        self,
        config_name: str | None,
        overrides: list[str],
        run_mode: RunMode,
        with_log_configuration: bool = False,
        from_shell: bool = True,
        validate_sweep_overrides: bool = True,
    ) -> DictConfig:
        if self.composed is None:
            with self.readable(config_name, overrides), searched():
                self.composed = super().compose_config(
                    config_name, overrides, run_mode, False, from_shell, validate_sweep_overrides
                )
                log_settings.refuse_odd_verbosity(self.composed.hydra)
            if self.typed:
                with suppress(*COMPOSING):  # what is wrong with the tracker is told where it is built
                    hold(OmegaConf.select(self.composed, "tracker.uri"))
        if with_log_configuration:
            with log_settings.told():
                configure_log(self.composed.hydra.hydra_logging, self.composed.hydra.verbose)
        return self.composed

    def run(
        self,
        config_name: str | None,
        task_function: TaskFunction,
        overrides: list[str],
        with_log_configuration: bool = True,
    ) -> Any:
        """Hydra's own, which sets up logging as the config says."""
        with log_settings.told():
            return super().run(config_name, task_function, overrides, with_log_configuration)

    def multirun(
        self,
        config_name: str | None,
        task_function: TaskFunction,
        overrides: list[str],
        with_log_configuration: bool = True,
    ) -> Any:
        """Hydra's own finds sweepers among its plugins only, which ours is not."""
        config = self.compose_config(config_name, overrides, RunMode.MULTIRUN, with_log_configuration)
        if config.hydra.sweeper.get("_target_") != one_at_a_time.NAME:
            return super().multirun(config_name, task_function, overrides, with_log_configuration)
        callbacks = Callbacks(config)
        callbacks.on_multirun_start(config=config, config_name=config_name)
        sweeper = OneAtATime()
        context = HydraContext(config_loader=self.config_loader, callbacks=callbacks)
        sweeper.setup(hydra_context=context, task_function=task_function, config=config)
        done = sweeper.sweep(list(config.hydra.overrides.task))
        callbacks.on_multirun_end(config=config, config_name=config_name)
        return done

    @contextmanager
    def readable(self, config_name: str | None, overrides: Sequence[str]) -> Iterator[None]:
        """Turns Hydra's exceptions into a ConfigError of one line."""
        try:
            yield
        except ConfigError:
            raise
        except COMPOSING as error:
            raise explain(error, overrides, lambda: self.known(config_name, overrides)) from error

    def known(self, config_name: str | None, overrides: Sequence[str]) -> list[str]:
        """Every key and group there is, with the groups chosen as asked; the keys of Hydra itself only if one is."""
        groups = self.config_loader.list_groups("")
        parsed = OverridesParser.create().parse_overrides(list(overrides))
        choices = [cast(str, one.input_line) for one in parsed if is_choice(one, groups) or "/" in one.key_or_group]
        try:
            config = self.config_loader.load_configuration(config_name, choices, RunMode.MULTIRUN)
        except COMPOSING:  # a choice is what was wrong
            config = self.config_loader.load_configuration(config_name, [], RunMode.MULTIRUN)
        plain = cast(dict[str, Any], OmegaConf.to_container(config, resolve=False))
        if not any(one.key_or_group.startswith("hydra.") for one in parsed):
            del plain["hydra"]
        known = (key for key, _ in walk(plain) if key.rpartition(".")[2] != "_target_")
        return sorted({*known, *(group for group in groups if group != "hydra")})

    def options(self, group: str) -> list[str]:
        """The names to put after `group=`."""
        return self.config_loader.get_group_options(group, ObjectType.CONFIG)


def is_choice(override: Override, groups: Sequence[str]) -> bool:
    """Whether an override chooses an option of a group."""
    return override.key_or_group in groups and override.package is None


def start(request: Request) -> Composer:
    """Makes the composer, with the user's own config folder in front of ours."""
    GlobalHydra.instance().clear()
    version.setbase("1.3")
    register_resolvers()
    one_at_a_time.register()
    request.overrides = roles.chosen(request.overrides)
    path = create_config_search_path(str(request.conf))
    for folder in roles.option_folders():
        path.prepend(provider=roles.ENTRY_POINTS, path=folder.as_uri(), anchor=SearchPathQuery(provider="schema"))
    if request.config_dir is not None:
        if not request.config_dir.is_dir():
            raise ConfigError(f"--config-dir must be a folder, got {request.config_dir}")
        own = f"file://{request.config_dir.resolve()}"
        path.prepend(provider="command-line", path=own, anchor=SearchPathQuery(provider="schema"))
    composer = cast(Composer, Composer.create_main_hydra2(task_name="fedexp", config_search_path=path))
    composer.typed = request.typed
    launchers.register()
    with composer.readable(request.config_name, request.overrides):
        _refuse_odd_choices(composer, request.overrides)
    return composer


def _refuse_odd_choices(composer: Composer, overrides: list[str]) -> None:
    """Hydra's own message does not say which group was given a number, a list or nothing."""
    groups = composer.config_loader.list_groups("")
    for override in OverridesParser.create().parse_overrides(overrides):
        if not override.key_or_group:
            raise ConfigError(f"cannot read {override.input_line!r}; write key=value or group=option")
        plain_choice = is_choice(override, groups) and not (override.is_delete() or override.is_sweep_override())
        if plain_choice and not isinstance(override.value(), str):
            wanted, given = ", ".join(composer.options(override.key_or_group)), override.get_value_element_as_str()
            raise ConfigError(f"{override.key_or_group} must be one of {wanted}, got {given}")


def plain(config: DictConfig) -> dict[str, Any]:
    """The config without Hydra's node, interpolations resolved: what runs, and what is saved with the state.

    Parts have today's names, whether it was composed now or noted by an older version. Passwords of addresses are out.
    """
    container = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    return without_passwords(renewed(OmegaConf.to_container(container, resolve=True)))


def settings(*configs: DictConfig) -> list[dict[str, Any]]:
    """Configs to compare: their interpolations resolved, or as they are written where one of them cannot be."""
    try:
        return [plain(config) for config in configs]
    except COMPOSING:
        return [unresolved(config) for config in configs]


def unresolved(config: DictConfig) -> dict[str, Any]:
    """A config by its top-level names, as it is written, but with today's names of parts."""
    container = renewed(OmegaConf.to_container(config, resolve=False))
    return {str(key): value for key, value in container.items()}


def read_config(folder: Path, trust: Trust = NOBODY) -> dict[str, Any]:
    """The plain config that is noted in a run folder.

    Raises:
        ConfigError: there is none, it cannot be read, or it names modules beyond those that are trusted.
    """
    path = folder / noted.FOLDER / "config.yaml"
    if not noted.is_there(folder):
        raise ConfigError(_nothing_noted(folder))
    written = noted.written(folder)
    if not isinstance(written.get("_target_"), str):
        raise ConfigError(f"{shown(path)} must hold the config of a run, which has a _target_; restore it")
    trust.demand(written, folder)
    register_resolvers()
    try:
        config = plain(OmegaConf.create(written))
    except COMPOSING as error:
        raise ConfigError(f"{shown(path)} cannot be read: {error}") from error
    trust.demand(config, folder)  # an interpolation may have made another part of it
    return config


def _nothing_noted(folder: Path) -> str:
    if any((folder / name).is_file() and (folder / name).stat().st_size for name in ("metrics.csv", "state.pt")):
        return f"{shown(folder)} has rounds but no config; restore its .hydra/config.yaml"
    if not (folder / noted.FOLDER).is_dir():
        return f"{shown(folder)} is no run folder: it has no .hydra/config.yaml"
    words = [*noted.overrides(folder), f"hydra.run.dir={shown(folder)}"]
    return f"{shown(folder)} was cut off before its config was written; begin again: fedexp run {shlex.join(words)}"
