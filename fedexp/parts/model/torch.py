"""Any `torch.nn.Module`: the result of a user's function or class, by the name `module:name`.

It gets those of `shape`, `classes`, `vocabulary` and `facts` that it has as parameters, and the `arguments`. It sets
its own first values; what it draws by PyTorch is seeded by the run.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from fedexp.core.imports.importing import FACTORY, import_object
from fedexp.core.user_code import refuse_errors
from fedexp.parts import ConfigError, Facts, Model, did_you_mean

KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def factory_arguments(factory: Callable[..., Any], facts: Facts, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments that the factory is called with.

    Raises:
        ConfigError: it does not take one of the arguments, or asks for something else.
    """
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (ValueError, TypeError):  # of a class or function that C code defines, or whose __signature__ is none
        return dict(arguments)
    available = {"shape": facts.shape, "classes": facts.classes, "vocabulary": facts.vocabulary, "facts": facts}
    names = [parameter.name for parameter in parameters if parameter.kind in KINDS]
    for name in arguments:
        if name not in names and all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters):
            raise ConfigError(
                f"model.arguments must be parameters of model.factory, got {name}; {did_you_mean(name, names)}"
            )
    call_arguments = {name: value for name, value in available.items() if name in names} | dict(arguments)
    for parameter in parameters:
        if (
            parameter.default is parameter.empty
            and parameter.name not in call_arguments
            and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ):
            raise ConfigError(
                f"model.arguments must hold {parameter.name}, which model.factory asks for; beside the arguments it is "
                f"given {', '.join(available)}"
            )
    return call_arguments


class Torch(Model):
    """`factory` names the function or class that makes the network; `arguments` are its keyword arguments."""

    factory: str
    arguments: dict | None = None

    def check(self) -> None:
        if not FACTORY.fullmatch(self.factory):
            file, _, name = self.factory.partition(".py:")
            hint = f"; write {file.strip('./').replace('/', '.')}:{name}" if name else ""
            raise ConfigError(f"Torch.factory must be a function or class as module:name, got {self.factory!r}{hint}")

        for name in self.arguments or {}:
            if not isinstance(name, str):
                raise ConfigError(
                    f"Torch.arguments must have the names of parameters as keys, got {name!r}; put a name"
                )

    def refuse(self, facts: Facts) -> None:
        factory_arguments(self._factory(), facts, self.arguments or {})

    def network(self, facts: Facts) -> nn.Module:
        factory = self._factory()
        call_arguments = factory_arguments(factory, facts, self.arguments or {})
        with refuse_errors(f"model.factory={self.factory} raised", with_line=True):
            return factory(**call_arguments)

    def _factory(self) -> Callable[..., Any]:
        factory = import_object(self.factory, "model.factory", "a function or class")
        if not callable(factory):
            raise ConfigError(f"model.factory must name a function or class, but {self.factory} is none")
        return factory
