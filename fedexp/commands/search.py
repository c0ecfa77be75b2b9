"""Choose hyperparameters by the main metric on validation data.

Searched: key=interval(A,B), key=tag(log,interval(A,B)), key=int(interval(A,B)), key=range(A,B,step=C) and
key=choice(X,Y). Compared, each on its own N trials: what is listed with commas (selector=random,greedyfed).
seed=0,1,2 makes every trial the mean over three seeds. No look is taken at test data.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from fedexp.commands.arguments import candidates
from fedexp.commands.arguments.json_document import add_json_flag, json_document
from fedexp.commands.arguments.parsing import Parser, complete_folder, folder_path, integer_at_least
from fedexp.config.trust import Trust, remember_modules
from fedexp.core.errors import ConfigError
from fedexp.files.unwritable import explain_unwritable
from fedexp.process.terminal import print_text
from fedexp.run import folders


def build_parser() -> Parser:
    """Declares the words of a run, and how to search."""
    parser = Parser("search key=interval(A,B) [...] [--trials N]", __doc__)
    parser.words("overrides", candidates.complete_override)
    parser.add_flag("trials of each method (20)", "--trials", type=integer_at_least(1), default=20, metavar="N")
    help_text = "processes at once (1); more may join by fedexp resume DIR, which also goes on after a kill"
    parser.add_flag(help_text, "--jobs", type=integer_at_least(1), default=1, metavar="N")
    parser.add_flag("of the draws (0)", "--seed", type=integer_at_least(0), default=0, metavar="N")
    parser.add_flag("let poor trials run to their end", "--no-pruning", action="store_true")
    help_text = "where the search is kept (outputs/search/DATE/TIME)"
    parser.add_flag(help_text, "--out", type=folder_path, values=complete_folder, metavar="DIR")
    add_json_flag(parser)
    parser.add_config_dir("look for your own options in DIR too")
    return parser


def act(words: list[str]) -> int:
    """Begins a search and works on it to its end."""
    arguments = build_parser().read(words)
    from fedexp.search.judge import describe_judge
    from fedexp.search.search import Search, describe, run_search, save
    from fedexp.sweep.launchers.contract import import_optional

    import_optional("optuna", "sweep", "fedexp search")
    config_dir = arguments.config_dir and str(arguments.config_dir)
    budget = {"trials": arguments.trials, "seed": arguments.seed, "pruning": not arguments.no_pruning}
    search = Search(words=tuple(arguments.overrides), config_dir=config_dir, **budget)
    exp = search.validate().exp
    search = replace(search, metric=exp.metrics[0])
    dated = folders.OUTPUTS / "search" / datetime.now().strftime("%Y-%m-%d/%H-%M-%S")
    with explain_unwritable(arguments.out or dated, "--out"):
        search_folder = folders.claim(arguments.out or dated, dated=arguments.out is None)
    folders.link_latest(search_folder)
    save(search, search_folder)
    remember_modules(config_dir=arguments.config_dir)
    trust = Trust(composed=True)
    with json_document(arguments.json) as content:
        if note := describe_judge(exp):
            print_text(f"note  {note}\n")
        print_text(run_search(search_folder, arguments.jobs, trust))
        if arguments.json:
            content |= describe(search_folder, trust)
    return 0


def resume(search_folder: Path, words: Sequence[str], jobs: int, trust: Trust) -> int:
    """Works on a search that was begun, beside other processes that may do so too."""
    from fedexp.run import change_tracker

    if not all(word.startswith(change_tracker.TRACKER_PREFIXES) for word in words):
        raise ConfigError("a search goes on as it began; only --jobs and tracker=... may be given anew")
    from fedexp.search.search import run_search

    node = change_tracker.tracker_from_words(words, trust.config_dir)
    print_text(run_search(search_folder, jobs, change_tracker.extend_trust(trust, node), node))
    return 0
