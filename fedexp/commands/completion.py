"""Print the script for tab completion.

bash and zsh: eval "$(fedexp completion bash)" in ~/.bashrc, zsh in ~/.zshrc
fish:         fedexp completion fish > ~/.config/fish/completions/fedexp.fish
"""

import sys

from fedexp.commands.parsing import Parser
from fedexp.commands.tab_completion import SCRIPTS
from fedexp.core.errors import ConfigError


def parser() -> Parser:
    """Declares the name of a shell."""
    made = Parser(f"completion {'|'.join(SCRIPTS)}", __doc__)
    made.words("shells", lambda asked, _: () if asked.shells else SCRIPTS)
    return made


def act(words: list[str]) -> int:
    """Prints the script."""
    shells = parser().read(words).shells
    if len(shells) != 1 or shells[0] not in SCRIPTS:
        raise ConfigError(f"completion needs a shell: {', '.join(SCRIPTS)}; got {' '.join(shells) or 'none'}")
    sys.stdout.write(SCRIPTS[shells[0]])
    return 0
