"""Any `torch.nn.Module`: the result of a user's function or class, by the name `module:name`.

It gets those of `shape`, `classes`, `vocabulary` and `facts` that it has as parameters, and the `arguments`. It sets
its own first values; what it draws by PyTorch is seeded by the run.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from fedexp.core.errors import ConfigError, nearest
from fedexp.core.importing import FACTORY, imported
from fedexp.core.user_code import errors_refused
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.contract import Model

KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def given(factory: Callable[..., Any], facts: Facts, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments that the factory is called with.

    Raises:
        ConfigError: it does not take one of the arguments, or asks for something else.
    """
    try:
        parameters = inspect.signature(factory).parameters.values()
    except ValueError:  # of a class or function that C code defines
        return dict(arguments)
    known = {"shape": facts.shape, "classes": facts.classes, "vocabulary": facts.vocabulary, "facts": facts}
    named = [one.name for one in parameters if one.kind in KINDS]
    for name in arguments:
        if name not in named and all(one.kind is not one.VAR_KEYWORD for one in parameters):
            raise ConfigError(
                f"model.arguments must be parameters of model.factory, got {name}; {nearest(name, named)}"
            )
    asked = {name: value for name, value in known.items() if name in named} | dict(arguments)
    for one in parameters:
        if one.default is one.empty and one.name not in asked and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            raise ConfigError(
                f"model.arguments must hold {one.name}, which model.factory asks for; beside the arguments it is given "
                f"{', '.join(known)}"
            )
    return asked


@dataclass(frozen=True, kw_only=True)
class Torch(Model):
    """`factory` names the function or class that makes the network; `arguments` are its keyword arguments."""

    factory: str
    arguments: dict | None = None

    def check(self) -> None:
        if not FACTORY.fullmatch(self.factory):
            file, _, name = self.factory.partition(".py:")
            cure = f"; write {file.strip('./').replace('/', '.')}:{name}" if name else ""
            raise ConfigError(f"Torch.factory must be a function or class as module:name, got {self.factory!r}{cure}")

    def refuse(self, facts: Facts) -> None:
        given(self._factory(), facts, self.arguments or {})

    def network(self, facts: Facts) -> nn.Module:
        factory = self._factory()
        asked = given(factory, facts, self.arguments or {})
        with errors_refused(f"model.factory={self.factory} raised", with_line=True):
            return factory(**asked)

    def _factory(self) -> Callable[..., Any]:
        found = imported(self.factory, "model.factory", "a function or class")
        if not callable(found):
            raise ConfigError(f"model.factory must name a function or class, but {self.factory} is none")
        return found
