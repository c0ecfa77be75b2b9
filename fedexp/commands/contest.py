"""Tune every method on the same budget, then compare them on new seeds.

METHODS are values with commas between them (algorithm=fedavg,fedprox), or a file (methods.yaml, methods.csv) with the
name, the words and the search of each. The other words hold for all; of these, key=interval(A,B) and what else
`fedexp search` knows is searched for every method. Trials are judged on validation data. Then each method runs with its
best values on seeds that no search has seen; the first method is what the others are compared with. The same command
goes on after a kill, and with more --seeds it adds them.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from fedexp.commands.arguments import candidates
from fedexp.commands.arguments.json_document import add_quiet_flag, silence_stdout
from fedexp.commands.arguments.parsing import Parser, complete_folder, folder_path, integer_at_least
from fedexp.commands.arguments.trust_flag import add_trust_flag, trust_of
from fedexp.config.trust import Trust, remember_modules
from fedexp.core.errors import ConfigError
from fedexp.process.terminal import print_text
from fedexp.run import folders


def build_parser() -> Parser:
    """Declares the methods and words, and the budget."""
    parser = Parser("contest METHODS key=interval(A,B) [...] [--trials N] [--seeds N]", __doc__)
    parser.words("overrides", candidates.complete_override)
    parser.add_flag("trials of each method (20)", "--trials", type=integer_at_least(1), default=20, metavar="N")
    parser.add_flag("new seeds of the last runs (8)", "--seeds", type=integer_at_least(1), default=8, metavar="N")
    parser.add_flag("of the draws (0)", "--seed", type=integer_at_least(0), default=0, metavar="N")
    parser.add_flag("processes at once (1)", "--jobs", type=integer_at_least(1), default=1, metavar="N")
    help_text = "where the contest is kept (outputs/contest/X; the same contest has the same X)"
    parser.add_flag(help_text, "--out", type=folder_path, values=complete_folder, metavar="DIR")
    add_quiet_flag(parser)
    add_trust_flag(parser)
    parser.add_config_dir("look for your own options in DIR too")
    return parser


def act(words: list[str]) -> int:
    """Begins a contest, or goes on with the same one, and works on it to its end."""
    arguments = build_parser().read(words)
    from fedexp.contest.contest import begin, run_contest
    from fedexp.contest.methods import read_methods
    from fedexp.contest.plan import ContestPlan
    from fedexp.search.judge import describe_judge
    from fedexp.sweep.launchers.contract import import_optional

    import_optional("optuna", "sweep", "fedexp contest")
    methods, shared = read_methods(arguments.overrides)
    config_dir = arguments.config_dir and str(arguments.config_dir)
    budget = {"trials": arguments.trials, "seeds": arguments.seeds, "seed": arguments.seed}
    plan, experiments = ContestPlan(methods=methods, words=shared, config_dir=config_dir, **budget).check()
    digest = hashlib.blake2b(plan.identity.encode(), digest_size=4).hexdigest()
    contest_folder = arguments.out or folders.OUTPUTS / "contest" / digest
    plan, is_new = begin(plan, contest_folder)
    remember_modules(config_dir=arguments.config_dir)
    trust = Trust(composed=True) if is_new else trust_of(arguments)
    with silence_stdout(arguments.quiet):
        if note := next(filter(None, map(describe_judge, experiments)), ""):
            print_text(f"note  {note}\n")
        print_text(run_contest(plan, contest_folder, arguments.jobs, trust))
    return 0


def resume(contest_folder: Path, words: Sequence[str], jobs: int, trust: Trust) -> int:
    """Goes on with a contest that was begun."""
    if words:
        raise ConfigError(f"a contest goes on as it began; only --jobs may be given anew, got {words[0]}")
    from fedexp.contest.contest import run_contest
    from fedexp.contest.plan import load

    print_text(run_contest(load(contest_folder, trust), contest_folder, jobs, trust))
    return 0
