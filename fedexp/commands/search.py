"""Choose hyperparameters by the main metric on validation data.

Searched: key=interval(A,B), key=tag(log,interval(A,B)), key=int(interval(A,B)), key=range(A,B,step=C) and
key=choice(X,Y). Compared, each on its own N trials: what is listed with commas (selector=random,greedyfed).
seed=0,1,2 makes every trial the mean over three seeds. No look is taken at test data.
"""

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from fedexp.commands import offered
from fedexp.commands.parsing import Parser, below, folder, whole
from fedexp.config.trust import Trust, remember
from fedexp.core.errors import ConfigError
from fedexp.run import folders


def parser() -> Parser:
    """Declares the words of a run, and how to search."""
    made = Parser("search key=interval(A,B) [...] [--trials N]", __doc__)
    made.words("overrides", offered.overrides)
    made.flag("trials of each method (20)", "--trials", type=whole(1), default=20, metavar="N")
    told = "processes at once (1); more may join by fedexp resume DIR, which also goes on after a kill"
    made.flag(told, "--jobs", type=whole(1), default=1, metavar="N")
    made.flag("of the draws (0)", "--seed", type=whole(0), default=0, metavar="N")
    made.flag("let poor trials run to their end", "--no-pruning", action="store_true")
    told = "where the search is kept (outputs/search/DATE/TIME)"
    made.flag(told, "--out", type=folder, values=below, metavar="DIR")
    made.own_options("look for your own options in DIR too")
    return made


def act(words: list[str]) -> int:
    """Begins a search and works on it to its end."""
    asked = parser().read(words)
    from fedexp.search.search import Search, conduct, save
    from fedexp.sweep.launchers.contract import needed

    needed("optuna", "sweep", "fedexp search")
    own = asked.config_dir and str(asked.config_dir)
    search = Search(tuple(asked.overrides), asked.trials, asked.seed, not asked.no_pruning, own)
    search = search.check()
    dated = folders.OUTPUTS / "search" / datetime.now().strftime("%Y-%m-%d/%H-%M-%S")
    place = folders.claim(asked.out or dated, dated=asked.out is None)
    folders.link_latest(place)
    save(search, place)
    remember(config_dir=asked.config_dir)
    sys.stdout.write(conduct(place, asked.jobs, Trust(composed=True)))
    return 0


def resume(place: Path, words: Sequence[str], jobs: int, trust: Trust) -> int:
    """Works on a search that was begun, beside other processes that may do so too."""
    from fedexp.run import retrack

    if not all(word.startswith(retrack.WORDS) for word in words):
        raise ConfigError("a search goes on as it began; only --jobs and tracker=... may be given anew")
    from fedexp.search.search import conduct

    node = retrack.chosen(words, trust.config_dir)
    sys.stdout.write(conduct(place, jobs, retrack.trusting(trust, node), node))
    return 0
