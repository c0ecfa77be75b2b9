"""The command line: the first word picks the command, the rest belongs to it (for `run`: to Hydra)."""

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedexp import __version__, folders
from fedexp.conf_dir import conf_dir
from fedexp.endings import ASKED_WRONGLY, INTERRUPTED, Stopped, complain, full_error
from fedexp.spec import ConfigError, nearest

HELP = """\
usage: fedexp COMMAND ...

{commands}

Begin with `fedexp run`, which needs no download, and `fedexp list`.
Every command answers --help; `fedexp --version` names the version.
"""


@dataclass(frozen=True)
class Command:
    """One first word: what it does with the rest, and what its help says."""

    act: Callable[[list[str]], int]
    usage: str
    purpose: str
    more: str = ""

    def help(self) -> str:
        return f"usage: fedexp {self.usage}\n\n{self.purpose}\n{self.more}"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0, 1 failed, 2 asked wrongly, 130 interrupted."""
    _environment()
    try:
        return _dispatch(list(sys.argv[1:] if argv is None else argv))
    except Stopped as stop:
        return stop.report()
    except ConfigError as error:
        if full_error():
            traceback.print_exc()
        complain(str(error))
        return ASKED_WRONGLY
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _environment() -> None:
    """One computing thread a process: several processes share the cores better than several threads do."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("MPLBACKEND", "Agg")


def _dispatch(words: list[str]) -> int:
    if not words:
        raise ConfigError(f"a command must be given: {', '.join(COMMANDS)}; see fedexp --help")
    first, *rest = words
    if first in ("--help", "-h", "help"):
        return _say(_help())
    if first == "--version":
        return _say(f"fedexp {__version__}\n")
    if first == "__complete":
        from fedexp.completion import complete

        return _say("".join(f"{word}\n" for word in complete(" ".join(rest))))
    if first not in COMMANDS:
        hint = f"write fedexp run {first} ..." if "=" in first else nearest(first, list(COMMANDS))
        raise ConfigError(f"unknown command {first}; {hint} (fedexp --help)")
    command = COMMANDS[first]
    if first != "run" and ("--help" in rest or "-h" in rest):
        return _say(command.help())
    return command.act(rest)


def _help() -> str:
    width = max(len(command.usage) for command in COMMANDS.values())
    rows = (f"  fedexp {command.usage:{width}}  {command.purpose}" for command in COMMANDS.values())
    return HELP.format(commands="\n".join(rows))


def _say(text: str) -> int:
    sys.stdout.write(text)
    sys.stdout.flush()
    return 0


def _run(words: list[str]) -> int:
    from fedexp.flags import parse

    flags = parse(words)
    if flags.help:
        from fedexp.listing import run_help

        return _say(run_help(conf_dir()))
    from fedexp.launch import launch

    return launch(flags)


def _resume(words: list[str]) -> int:
    places = [word for word in words if not word.startswith(("hydra", "-"))]
    if len(places) != 1:
        raise ConfigError(f"resume needs one folder of a run or a sweep, got {len(places)}; e.g. outputs/latest")
    folder = Path(places[0])
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; resume needs that of a run or a sweep, e.g. outputs/latest")
    if folders.is_search(folder):
        from fedexp.commands import search

        return search.resume(folder, [word for word in words if word != places[0]])
    from fedexp.launch import resume

    return resume(folder, [word for word in words if word != places[0]])


def _plan(words: list[str]) -> int:
    from fedexp.commands import plan

    return plan.act(words)


def _report(words: list[str]) -> int:
    from fedexp.commands import report

    return report.act(words)


def _search(words: list[str]) -> int:
    from fedexp.commands import search

    return search.act(words)


def _compare(words: list[str]) -> int:
    from fedexp.commands import compare

    return compare.act(words)


def _verify(words: list[str]) -> int:
    from fedexp.commands import verify

    return verify.act(words)


def _list(words: list[str]) -> int:
    from fedexp import listing

    names = words[0].split("=") if len(words) == 1 else words
    if len(names) > 2:
        raise ConfigError(f"list shows a group or one of its options, got {len(names)} words: {' '.join(words)}")
    show = (listing.all_groups, listing.one_group, listing.one_option)[len(names)]
    return _say(show(conf_dir(), *names))


def _data(words: list[str]) -> int:
    from fedexp.commands import data

    return data.act(words)


def _completion(words: list[str]) -> int:
    from fedexp.completion import SCRIPTS

    if len(words) != 1 or words[0] not in SCRIPTS:
        raise ConfigError(f"completion needs a shell: {', '.join(SCRIPTS)}; got {' '.join(words) or 'none'}")
    return _say(SCRIPTS[words[0]])


COMMANDS = {
    "run": Command(
        _run, "run [group=option] [key=value] [-m]", "run an experiment; with -m every combination of values"
    ),
    "plan": Command(
        _plan,
        "plan [group=option] [key=value] [-m] [--json]",
        "say what a run would cost, without running it",
        "\nTakes the words of fedexp run and refuses what it would refuse. Tries two rounds, and more for two seconds\n"
        "where they are short, in a temporary folder; then tells the engine and why, the time from the command to the\n"
        "end, peak memory, megabytes sent, simulated time, epsilon and disk. What is sent, the simulated time and\n"
        "epsilon are exact where the seed alone decides who takes part (selector=all, random, fedcs and hybrids);\n"
        "where a selector learns they are estimates, and epsilon a bound. -m: a sweep by its first point.\n"
        "--json: all numbers for programs.\n",
    ),
    "resume": Command(
        _resume,
        "resume DIR [hydra/launcher=...]",
        "continue an interrupted run, or what a sweep still lacks",
        "\nDIR is a run folder, or the folder of a sweep (fedexp run -m): then its missing, unfinished and failed\n"
        "points are run and nothing else, where hydra/launcher says (default: where they began).\n",
    ),
    "search": Command(
        _search,
        "search key=interval(A,B) [key=value] [--trials N]",
        "choose hyperparameters by validation accuracy",
        "\nSearched: key=interval(A,B), key=tag(log,interval(A,B)), key=int(interval(A,B)), key=range(A,B,step=C) and\n"
        "key=choice(X,Y). Compared, each on its own N trials: what is listed with commas (selector=random,greedyfed).\n"
        "seed=0,1,2 makes every trial the mean over three seeds. No look is taken at test data.\n\n"
        "  --trials N      trials of each method (20)\n"
        "  --jobs N        processes at once (1); more may join by fedexp resume DIR, which also goes on after a kill\n"
        "  --seed N        of the draws (0)\n"
        "  --no-pruning    let poor trials run to their end\n"
        "  --out DIR       the folder (outputs/search/DATE/TIME)\n"
        "  --config-dir D  look for your own options in D too\n",
    ),
    "report": Command(
        _report,
        "report DIR... [--grid ROWS,COLUMNS] [--out FILE]",
        "compare runs: tables and drawings on a page",
        "\nDIR is a run folder, a sweep, or a folder with runs further below. Runs that differ in the seed only are\n"
        "one method. FILE ends in .html (default: report.html in the one DIR, else outputs/report.html): one page for\n"
        "the browser, which needs nothing else. Or it ends in .md: the folder named like it then holds the pictures,\n"
        "and the tables as CSV, Markdown and LaTeX. --grid aggregator,attack lays final accuracies out by two\n"
        "settings instead, as heat maps with the worst case of each row.\n",
    ),
    "compare": Command(
        _compare,
        'compare A... --against B... [--measures NAMES] [--out FILE] [--fail-if "..."]',
        "differences of methods, runs paired by seed, with tests",
        "\nA and B are run folders, sweeps, or folders with runs below; words KEY=VALUE (selector=random) pick runs\n"
        "of the folders on their side. Every method in A is compared with the one method in B, seed by seed. Refused:\n"
        "pairs that differ in data, split (who holds which example) or budget (rounds, clients, participants,\n"
        "evaluation, stop).\n\n"
        "--measures  of test_accuracy, accuracy_auc, loss_auc, roa@X, toa@X; default: the first three, and roa (with\n"
        "            a simulated clock toa too) at the highest accuracy that half of the runs reach. Fewer need fewer\n"
        "            seeds.\n"
        "--out       the page (.md) or the table in full precision (.csv). With more than two methods a figure of\n"
        "            critical differences is drawn beside it (default: outputs/compare.png).\n"
        '--fail-if   "test_accuracy < -0.01" (also <=, >, >=; test_accuracy.low or .high: a bound of the interval):\n'
        "            exit code 1 where the mean of A - B is so, or cannot be judged. May be given several times.\n",
    ),
    "list": Command(
        _list,
        "list [GROUP [OPTION]]",
        "show what can be chosen: groups, a group's options, an option's keys",
        "\n* marks the default. E.g. fedexp list; fedexp list selector; fedexp list selector greedyfed\n",
    ),
    "verify": Command(
        _verify,
        "verify RUN_DIR [--rounds K] [--seed S]",
        "compute rounds of a run again and compare",
        "\nReads every saved state and replays K rounds (default 3): round 1 and random ones, drawn by --seed, first\n"
        "those that follow a saved state (keep_states=N keeps one every N rounds), then what is near one. All rounds\n"
        "in between are compared too: digests of the models and lines of metrics.csv, bit by bit where engine,\n"
        "device and versions are those of the run, else metrics within rounding. Names the first differing round;\n"
        "exit code 0: all equal, 1: something differs or is damaged. Nothing in RUN_DIR is changed.\n",
    ),
    "data": Command(_data, "data check|download NAME... [data_dir=DIR]", "verify or fetch the files of datasets"),
    "completion": Command(
        _completion,
        "completion bash|zsh|fish",
        "print the script for tab completion",
        '\nbash and zsh: eval "$(fedexp completion bash)" in ~/.bashrc, zsh in ~/.zshrc\n'
        "fish:         fedexp completion fish > ~/.config/fish/completions/fedexp.fish\n",
    ),
}

if __name__ == "__main__":
    sys.exit(main())
