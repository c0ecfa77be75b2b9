"""The commands of a table's runs; the words that runs have in common stand once."""

import shlex
from collections.abc import Mapping, Sequence
from itertools import groupby, takewhile

OWN_WORDS = 2  # of a run, where several have the others in common


def describe_commands(runs: Mapping[tuple[str, ...], tuple[str, str]], seeds: Sequence[int]) -> str:
    """A line for each run, by its words: its name and the minutes that it takes, for these numbers of seeds."""
    shared_words = takewhile(lambda words: len(set(words)) == 1, zip(*runs, strict=False))
    common = [words[0] for words in shared_words]
    shared = f"`fedexp run -m {shlex.join(common)}{' ' * bool(common)}seed={','.join(map(str, range(seeds[0])))}`"
    seeds_note = f" (up to {seeds[-1]} seeds where a cell has more)" * (len(seeds) > 1)
    alone: list[str] = []
    groups: list[str] = []
    for prefix, group in groupby(runs.items(), lambda item: item[0][len(common) : -OWN_WORDS]):
        members = list(group)
        shares_words = len(prefix) > OWN_WORDS and len(members) > OWN_WORDS
        begin = len(common) + len(prefix) * shares_words
        bullets = [
            f"* {name}: {f'`{shlex.join(words[begin:])}`, ' * (len(words) > begin)}{minutes} min"
            for words, (name, minutes) in members
        ]
        if shares_words:
            groups += ["", f"Behind `{shlex.join(prefix)}`:", "", *bullets]
        else:
            alone += bullets
    minutes = "the minutes of a seed (as run, often beside others; about: estimated)"
    intro = f"{shared}{seeds_note}, and behind it the words of a run, with {minutes}:"
    return "\n".join([intro, "", *alone, *groups])
