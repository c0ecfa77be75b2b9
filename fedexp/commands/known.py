"""What every first word of the command line is for, as its help says.

The module of its name reads its flags and has the work done; `tab_completion` says what may follow it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """How a command is written, and what its help says."""

    usage: str
    purpose: str
    more: str = ""

    def help(self) -> str:
        return f"usage: fedexp {self.usage}\n\n{self.purpose}\n{self.more}"


COMMANDS = {
    "run": Command("run [group=option] [key=value] [-m]", "run an experiment; with -m every combination of values"),
    "plan": Command(
        "plan [group=option] [key=value] [-m] [--json]",
        "say what a run would cost, without running it",
        "\nTakes the words of fedexp run and refuses what it would refuse. Tries two rounds, and more for two seconds\n"
        "where they are short, in a temporary folder; then tells the engine and why, the time from the command to the\n"
        "end, peak memory, megabytes sent, simulated time, epsilon and disk. What is sent, the simulated time and\n"
        "epsilon are exact where the seed alone decides who takes part (selector=all, random, fedcs and hybrids);\n"
        "where a selector learns they are estimates, and epsilon a bound. Where a rule may end the run, rounds are at\n"
        "most, at least or about so many. Where two rounds would take too long it tries parts of one (some clients,\n"
        "examples, models), scales them, and says which (tried in part); - stands for what was not found in time.\n"
        "What it does meanwhile goes to stderr. -m: a sweep by its first point.\n"
        "--json: all numbers for programs.\n",
    ),
    "resume": Command(
        "resume DIR [tracker=...] [hydra/launcher=...]",
        "continue a run, or what a sweep or a search lacks",
        "\nDIR is a run folder, or the folder of a sweep (fedexp run -m): then its missing, unfinished and failed\n"
        "points are run and nothing else, where hydra/launcher says (default: where they began). Or it is the folder\n"
        "of a search, which may be worked on by several processes at once (--jobs N). tracker=mlflow sends there what\n"
        "has not arrived, also of runs and sweeps that are finished.\n\n"
        "A folder runs nothing of its own: parts from modules that were never run on this machine are refused.\n\n"
        "  --trust-modules A,B  import these modules all the same\n"
        "  --config-dir D       where the options lie that a sweep or search was begun with\n",
    ),
    "search": Command(
        "search key=interval(A,B) [...] [--trials N]",
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
        "report DIR... [--grid ROWS,COLUMNS] [--out FILE] [--wide]",
        "compare runs: tables and drawings on a page",
        "\nDIR is a run folder, a sweep, or a folder with runs further below. Runs that differ in the seed only are\n"
        "one method. FILE ends in .html (default: report.html in the one DIR, else outputs/report.html): one page for\n"
        "the browser, which needs nothing else. Or it ends in .md: the folder named like it then holds the pictures,\n"
        "and the tables as CSV, Markdown and LaTeX. --grid aggregator,attack lays final accuracies out by two\n"
        "settings instead, as heat maps with the worst case of each row. --wide prints columns that do not fit the\n"
        "terminal, too.\n",
    ),
    "compare": Command(
        "compare A... --against B... [--fail-if TEXT]",
        "test differences of methods, runs paired by seed",
        "\nA and B are run folders, sweeps, or folders with runs below; words KEY=VALUE (selector=random) pick runs\n"
        "of the folders on their side. Every method in A is compared with the one method in B, seed by seed. Refused:\n"
        "pairs that differ in data, split (who holds which example) or budget (rounds, clients, participants,\n"
        "how often is evaluated, stop; local epochs, steps and batches; megabytes sent).\n\n"
        "--measures  of test_accuracy, accuracy_auc, loss_auc, roa@X, toa@X; default: the first three, and roa (with\n"
        "            a simulated clock toa too) at the highest accuracy that half of the runs reach. Fewer need fewer\n"
        "            seeds.\n"
        "--out       the page (.md) or the table in full precision (.csv). With more than two methods a figure of\n"
        "            critical differences is drawn beside it (default: outputs/compare.png).\n"
        "--unequal   of epochs, steps, megabytes: what of the budget may differ, because that is what is compared\n"
        "--wide      print columns that do not fit the terminal, too\n"
        '--fail-if   "test_accuracy < -0.01" (also <=, >, >=; test_accuracy.low or .high: a bound of the interval):\n'
        "            exit code 1 where the mean of A - B is so, or cannot be judged. May be given several times.\n",
    ),
    "verify": Command(
        "verify RUN_DIR [--rounds K] [--seed S] [--all]",
        "check what a run's folder says, and compute rounds again",
        "\nFirst the folder against itself: the tables are whole and agree, every round has its digest, every saved\n"
        "state is that of its round, its models score what metrics.csv says, summary.json and federation.csv come\n"
        "out again. Then K rounds (default 3; --all: all of them) are replayed: round 1 and random ones, drawn by\n"
        "--seed, first those that follow a saved state (keep_states=N keeps one every N rounds), then what is near\n"
        "one. All rounds in between are compared too: digests of the models and lines of metrics.csv and\n"
        "clients.csv, bit by bit where engine, device and versions are those of the run, else within rounding. The\n"
        "last line names what was checked and what was not. Exit code 0: all as written, 1: something differs, is\n"
        "missing or damaged. Nothing in RUN_DIR is changed, and nothing of it runs: parts from modules that were\n"
        "never run on this machine need --trust-modules A,B.\n",
    ),
    "list": Command(
        "list [GROUP [OPTION]]",
        "show what can be chosen: groups, a group's options, an option's keys",
        "\n* marks the default. E.g. fedexp list; fedexp list selector; fedexp list selector greedyfed\n",
    ),
    "new": Command(
        "new GROUP NAME [--into DIR]",
        "write the three files of a part of your own, which runs",
        "\nIn DIR (default: here): mine/NAME.py, a part of the group that does something simple and says where yours\n"
        "goes; conf/GROUP/NAME.yaml, its keys; tests/test_NAME.py, a short run. Nothing is overwritten. GROUP is a\n"
        "group of fedexp list whose options are parts: selector, aggregator, model and so on.\n",
    ),
    "data": Command("data check|download NAME... [data_dir=DIR]", "verify or fetch the files of datasets"),
    "completion": Command(
        "completion bash|zsh|fish",
        "print the script for tab completion",
        '\nbash and zsh: eval "$(fedexp completion bash)" in ~/.bashrc, zsh in ~/.zshrc\n'
        "fish:         fedexp completion fish > ~/.config/fish/completions/fedexp.fish\n",
    ),
}
