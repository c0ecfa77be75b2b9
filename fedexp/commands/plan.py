"""`fedexp plan [overrides] [-m] [--json]`: the words of `fedexp run`, the work left to `fedexp.plan`."""

import sys
import time

from fedexp.core import logs
from fedexp.core.errors import ConfigError
from fedexp.core.torchrun import under_torchrun


def act(words: list[str]) -> int:
    """Says what a run will cost; leaves no folder."""
    begun = time.perf_counter()
    from fedexp.commands.run_flags import parse

    as_json = "--json" in words
    flags = parse([word for word in words if word != "--json"])
    if flags.cfg is not None or flags.info is not None:
        raise ConfigError("plan runs nothing that --cfg or --info could show; use them with fedexp run")
    if under_torchrun():
        raise ConfigError("plan tries rounds in one group of processes; run it without torchrun")
    with logs.kept():
        logs.silence()
        from fedexp.plan.telling import telling

        with telling() as voice:
            from fedexp.plan import asked, table
            from fedexp.plan.plan import plan

            loaded_s = time.perf_counter() - begun
            voice.begin("reading the config", aloud=False)
            wanted = asked.compose(flags)
            found = plan(wanted.config, begun, loaded_s, voice)
    sys.stdout.write((table.as_json if as_json else table.table)(found, wanted))
    return 0
