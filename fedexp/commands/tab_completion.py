"""Tab completion: what may follow the words typed so far, from the YAML files alone, so that TAB answers at once."""

from collections.abc import Callable, Iterable
from pathlib import Path

from fedexp.commands.compare import FLAGS as COMPARE_FLAGS
from fedexp.commands.new import FLAGS as NEW_FLAGS
from fedexp.commands.run_flags import FLAGS
from fedexp.commands.search import FLAGS as SEARCH_FLAGS
from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.new import new
from fedexp.run import folders

BASH = """\
_fedexp_complete() {
    local line="${COMP_LINE:0:$COMP_POINT}" IFS=$'\\n'
    COMPREPLY=($(fedexp __complete "$line" 2>/dev/null))
    local word="${line##*[[:space:]]}"
    if [[ "$COMP_WORDBREAKS" == *=* && "$word" == *=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*=}"}"}")
    fi
    if [[ "${COMPREPLY[*]}" == *[=./] ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _fedexp_complete fedexp
"""
SCRIPTS = {
    "bash": BASH,
    "zsh": f"autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n{BASH}",
    "fish": "complete -c fedexp -f -a '(fedexp __complete (commandline -cp) 2>/dev/null)'\n",
}


def complete(line: str) -> list[str]:
    """The words that may stand where the line ends."""
    *before, word = line.split() if line and not line[-1].isspace() else [*line.split(), ""]
    if len(before) <= 1:
        return _starting(word, [*_COMPLETERS, "--help", "--version"])
    completer = _COMPLETERS.get(before[1], lambda *_: [])
    return completer(before[2:], word)


def _starting(word: str, candidates: Iterable[str]) -> list[str]:
    return sorted({candidate for candidate in candidates if candidate.startswith(word)})


def _run(before: list[str], word: str) -> list[str]:
    if before and before[-1] in ("--cfg", "-c"):
        return _starting(word, ["job", "hydra", "all"])
    if word.startswith("-"):
        return _starting(word, FLAGS)
    conf = conf_dir()
    group, equal, typed = word.partition("=")
    if not equal:
        return _keys(conf, before, word)
    if group not in catalog.groups(conf):
        return []
    done = typed[: typed.rfind(",") + 1]
    return _starting(word, (f"{group}={done}{option}" for option in catalog.options(conf, group)))


def _keys(conf: Path, before: list[str], word: str) -> list[str]:
    """Groups, and one more step of the dotted keys of the options chosen so far."""
    groups = catalog.groups(conf)
    chosen = dict(other.split("=", 1) for other in before if other.partition("=")[0] in groups)
    names = [f"{group}=" for group in groups]
    head = word[: word.rfind(".") + 1]
    for key in catalog.keys(conf, chosen):
        if key.startswith(head):
            step, dot, _ = key.removeprefix(head).partition(".")
            names.append(f"{head}{step}{dot or '='}")
    return _starting(word, names)


def _resume(_: list[str], word: str) -> list[str]:
    found = (str(path.parent) for pattern in ("*/*", "multirun/*/*/*") for path in _runs(folders.OUTPUTS, pattern))
    many = [
        str(path.parent)
        for one in ("multirun/*/*/multirun", "search/*/*/search")
        for path in folders.OUTPUTS.glob(f"{one}.yaml")
    ]
    latest = [str(folders.OUTPUTS / "latest")] if (folders.OUTPUTS / "latest").exists() else []
    return _starting(word, [*found, *many, *latest]) or _starting(word, _below(word))


def _report(before: list[str], word: str) -> list[str]:
    if before and before[-1] == "--out":
        return _starting(word, _below(word))
    flag = ["--grid", "--out", "--wide"] if word.startswith("-") else []
    return _starting(word, [*_resume(before, word), *flag])


def _compare(before: list[str], word: str) -> list[str]:
    if word.startswith("-"):
        return _starting(word, sorted(COMPARE_FLAGS))
    return _report(before, word)


def _search(before: list[str], word: str) -> list[str]:
    return _starting(word, SEARCH_FLAGS) if word.startswith("-") else _run(before, word)


def _verify(before: list[str], word: str) -> list[str]:
    flags = ["--all", "--rounds", "--seed", "--trust-modules"]
    return _starting(word, flags) if word.startswith("-") else _resume(before, word)


def _runs(outputs: Path, pattern: str) -> list[Path]:
    return list(outputs.glob(f"{pattern}/.hydra")) if outputs.is_dir() else []


def _below(word: str) -> list[str]:
    parent = Path(word[: word.rfind("/") + 1] or ".")
    return [f"{path}/" for path in parent.glob("*") if path.is_dir()] if parent.is_dir() else []


def _data(before: list[str], word: str) -> list[str]:
    if not before:
        return _starting(word, ["check", "download"])
    names = [name for name in catalog.options(conf_dir(), "dataset") if name not in before]
    return _starting(word, [*names, "data_dir="])


def _list(before: list[str], word: str) -> list[str]:
    groups = catalog.groups(conf_dir())
    if not before:
        return _starting(word, groups)
    return _starting(word, catalog.options(conf_dir(), before[0])) if len(before) == 1 and before[0] in groups else []


def _new(before: list[str], word: str) -> list[str]:
    if before and before[-1] == "--into":
        return _starting(word, _below(word))
    if word.startswith("-"):
        return _starting(word, NEW_FLAGS)
    return [] if before else _starting(word, new.groups())


def _completion(before: list[str], word: str) -> list[str]:
    return [] if before else _starting(word, SCRIPTS)


_COMPLETERS: dict[str, Callable[[list[str], str], list[str]]] = {
    "run": _run,
    "plan": _run,
    "resume": _resume,
    "search": _search,
    "report": _report,
    "compare": _compare,
    "verify": _verify,
    "list": _list,
    "new": _new,
    "data": _data,
    "completion": _completion,
}
