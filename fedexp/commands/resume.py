"""Continue a run, or do what a sweep or a search lacks.

DIR is a run folder, or the folder of a sweep (fedexp run -m): then its missing, unfinished and failed points are run
and nothing else, where hydra/launcher says (default: where they began). Or it is the folder of a search, which several
processes may work on at once. tracker=mlflow sends there what has not arrived, also of runs and sweeps that are
finished.

A folder runs nothing of its own: parts from modules that were never run on this machine are refused.
"""

from argparse import Namespace
from pathlib import Path

from fedexp.commands import offered
from fedexp.commands.parsing import Parser, whole
from fedexp.commands.trusting import trust_of, vouch
from fedexp.core.errors import ConfigError
from fedexp.core.own_files import refuse_strange
from fedexp.run import folders

ANEW = ("tracker", "hydra/launcher")  # what may be chosen again


def parser() -> Parser:
    """Declares the folder, then what is chosen again."""
    made = Parser("resume DIR [tracker=...] [hydra/launcher=...]", __doc__)
    made.words("words", _following)
    made.flag("processes at once, for a search (1)", "--jobs", type=whole(1), metavar="N")
    vouch(made)
    made.own_options("where the options lie that a sweep or search was begun with")
    return made


def act(words: list[str]) -> int:
    """Continues a run, a sweep or a search."""
    asked = parser().read(words)
    if not asked.words:
        raise ConfigError("resume needs the folder of a run, a sweep or a search, e.g. fedexp resume outputs/latest")
    folder, more = Path(asked.words[0]), asked.words[1:]
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; resume needs that of a run, e.g. fedexp resume outputs/latest")
    refuse_strange(folder, writing=True)
    if folders.is_search(folder):
        from fedexp.commands import search

        return search.resume(folder, more, asked.jobs or 1, trust_of(asked))
    if asked.jobs is not None:
        raise ConfigError(f"--jobs is for a search, which {folder} is not; a sweep takes hydra/launcher=joblib")
    from fedexp.commands.launch import resume

    return resume(folder, more, trust_of(asked))


def _following(asked: Namespace, word: str) -> list[str]:
    if not asked.words:
        return offered.begun(word)
    asked.overrides = asked.words[1:]
    return [one for one in offered.overrides(asked, word) if one.startswith(ANEW)]
