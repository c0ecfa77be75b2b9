"""Print the script for tab completion.

bash and zsh: eval "$(fedexp completion bash)" in ~/.bashrc, zsh in ~/.zshrc
fish:         fedexp completion fish > ~/.config/fish/completions/fedexp.fish
"""

import sys

from fedexp.commands.arguments.parsing import Parser
from fedexp.commands.arguments.tab_completion import SCRIPTS
from fedexp.core.errors import ConfigError


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
    sys.stdout.write(SCRIPTS[shells[0]])
    return 0
