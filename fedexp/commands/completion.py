"""Print the script for tab completion.

bash and zsh: eval "$(fedexp completion bash)" in ~/.bashrc, zsh in ~/.zshrc
fish:         fedexp completion fish > ~/.config/fish/completions/fedexp.fish
"""

from collections.abc import Iterable

from fedexp.commands.arguments.parsing import COMMANDS, Parser, long_names, parser_of
from fedexp.core.errors import ConfigError
from fedexp.process.terminal import print_text

BASH = """\
_fedexp_complete() {
    local line="${COMP_LINE:0:$COMP_POINT}" word completion
    COMPREPLY=()
    while IFS= read -r completion; do
        case "$completion" in *[!A-Za-z0-9_=,./:@+%-]*) printf -v completion %q "$completion" ;; esac
        COMPREPLY+=("$completion")
    done < <(fedexp __complete "$line" 2>/dev/null)
    word="${line##*[[:space:]]}"
    if [[ "$COMP_WORDBREAKS" == *=* && "$word" == *=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*=}"}"}")
    fi
    if [[ "${COMPREPLY[*]}" == *[=./] ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _fedexp_complete fedexp
"""
ZSH = """\
autoload -U +X compinit && compinit
_fedexp_complete() {
    local -a completions unfinished
    completions=(${(f)"$(fedexp __complete "${(j: :)words[1,CURRENT-1]} $PREFIX" 2>/dev/null)"})
    unfinished=(${(M)completions:#*[=./]})
    completions=(${completions:#*[=./]})
    (( $#unfinished )) && compadd -S '' -a unfinished
    (( $#completions )) && compadd -a completions
}
compdef _fedexp_complete fedexp
"""
SCRIPTS = {
    "bash": BASH,
    "zsh": ZSH,
    "fish": "complete -c fedexp -f -a '(fedexp __complete (commandline -cp) 2>/dev/null)'\n",
}


def build_parser() -> Parser:
    """Declares the name of a shell."""
    parser = Parser(f"completion {'|'.join(SCRIPTS)}", __doc__)
    parser.words("shells", lambda arguments, _: () if arguments.shells else SCRIPTS)
    return parser


def act(words: list[str]) -> int:
    """Prints the script."""
    shells = build_parser().read(words).shells
    if len(shells) != 1 or shells[0] not in SCRIPTS:
        raise ConfigError(f"completion needs a shell: {', '.join(SCRIPTS)}; got {' '.join(shells) or 'none'}")
    print_text(SCRIPTS[shells[0]])
    return 0


def complete(line: str) -> list[str]:
    """The words that may stand where the line ends, from declarations and YAML files alone, which is quick."""
    *before, word = line.split() if line and not line[-1].isspace() else [*line.split(), ""]
    if len(before) <= 1:
        completions: Iterable[str] = [*COMMANDS, "--help", "--version"]
    else:
        completions = _completions(before[1], before[2:], word) if before[1] in COMMANDS else ()
    return sorted({completion for completion in completions if completion.startswith(word)})


def _completions(command: str, before: list[str], word: str) -> Iterable[str]:
    parser = parser_of(command)
    if before and before[-1] in parser.values:
        return parser.values[before[-1]](word)
    flag, equal, value = word.partition("=")
    if equal and flag in parser.values:
        return (f"{flag}={completion}" for completion in parser.values[flag](value))
    if word.startswith("-"):
        return long_names(parser)
    try:
        arguments = parser.read(before)
    except ConfigError:  # half a line may be wrong yet
        arguments = parser_of(command).read(())
    return parser.completer(arguments, word)
