"""Say what a run would cost, without running it.

Takes the words of fedexp run and refuses what it would refuse. Tries two rounds, and more for two seconds where they
are short, in a temporary folder. Then tells the engine and why, the time from the command to the end, peak memory,
megabytes sent, simulated time, epsilon and disk. What is sent, the simulated time and epsilon are exact where the seed
alone decides who takes part (selector=all, random, fedcs and hybrids). Where a selector learns they are estimates, and
epsilon a bound. Where a rule may end the run, rounds are at most, at least or about so many. Where two rounds would
take too long, parts of one are tried (some clients, examples, models) and scaled; the table says which (tried in part).
A - stands for what was not found in time. What happens meanwhile goes to stderr. A sweep (-m) is planned by its first
point.
"""

import time

from fedexp.commands.arguments.parsing import Parser
from fedexp.commands.run import add_run_options
from fedexp.core.errors import ConfigError
from fedexp.process import logs
from fedexp.process.terminal import print_text
from fedexp.process.torchrun import under_torchrun


def build_parser() -> Parser:
    """Declares the words that compose a run."""
    parser = Parser("plan [group=option] [key=value] [-m] [--json]", __doc__)
    add_run_options(parser)
    parser.add_flag("all numbers, for programs", "--json", action="store_true")
    return parser


def act(words: list[str]) -> int:
    """Says what a run will cost; leaves no folder."""
    start_time = time.perf_counter()
    arguments = build_parser().read(words)
    if under_torchrun():
        raise ConfigError("plan tries rounds in one group of processes; run it without torchrun")
    with logs.restore_logging():
        logs.silence()
        from fedexp.plan.progress import report_progress

        with report_progress() as voice:
            from fedexp.plan import request, table
            from fedexp.plan.plan import plan

            loaded_s = time.perf_counter() - start_time
            voice.begin_step("reading the config", print_now=False)
            wanted = request.compose(arguments)
            estimate = plan(wanted.run, start_time, loaded_s, voice)
    print_text((table.as_json if arguments.json else table.table)(estimate, wanted))
    return 0
