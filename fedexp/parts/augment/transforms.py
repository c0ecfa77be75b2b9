"""Transforms of `torchvision.transforms.v2` by their names, one image after another.

Every image gets draws of its own, whatever else is in the batch. Transforms see pixels (from 0 to 1 where the dataset
stores bytes), and what they give is normalised again. Slower than `crop_flip`, and only with `engine=loop`.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import torch

from fedexp.parts import Augment, ConfigError, Facts, did_you_mean, first_line, seed_torch

SEED_BASE = 2**24  # numbers that one draw tells apart


class Transforms(Augment):
    """`steps` are names, or `{name: {argument: value}}`, in the order in which they are applied."""

    draws: ClassVar[int] = 2
    one_by_one: ClassVar[bool] = True

    steps: tuple[Any, ...]

    def check(self) -> None:
        for step in self.steps:
            values = list(step.values()) if isinstance(step, Mapping) else []
            if not isinstance(step, str) and not (len(values) == 1 and isinstance(values[0], Mapping)):
                raise ConfigError(f"Transforms.steps must hold names or {{name: {{argument: value}}}}, got {step!r}")

    @cached_property
    def pipeline(self) -> list[torch.nn.Module]:
        """The transforms; ConfigError if there is none of a name, or it does not take its arguments."""
        return [
            _build_transform(*(next(iter(step.items())) if isinstance(step, Mapping) else (step, {})))
            for step in self.steps
        ]

    def refuse(self, facts: Facts) -> None:
        if len(facts.shape) != 3 or facts.vocabulary:
            raise ConfigError(
                f"augment=transforms needs images of the shape (channels, height, width), got {facts.shape}; use "
                "augment=none"
            )
        for step, transform in zip(self.steps, self.pipeline, strict=True):
            name, blank = step if isinstance(step, str) else next(iter(step)), torch.zeros(facts.shape)
            try:
                with seed_torch(0):
                    result = transform(blank)
            except Exception as error:
                raise ConfigError(
                    f"augment.steps: {name} cannot be applied to images {facts.shape}: {first_line(error)}"
                ) from error
            if not isinstance(result, torch.Tensor) or result.shape != blank.shape or result.dtype != blank.dtype:
                raise ConfigError(f"augment.steps: {name} must give float images {facts.shape} for such ones")

    def batch(self, images: torch.Tensor, uniform: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
        pixels, augmented = images * std + mean, torch.empty_like(images)
        seeds = (uniform.double() * SEED_BASE).long().tolist()
        for position, (low, high) in enumerate(seeds):
            with seed_torch(low + SEED_BASE * high, images.device):
                image = pixels[position]
                for transform in self.pipeline:
                    image = transform(image)
            augmented[position] = image
        return (augmented - mean) / std


def _build_transform(name: str, arguments: Mapping[str, Any]) -> torch.nn.Module:
    from torchvision.transforms import v2

    names = [key for key, kind in vars(v2).items() if isinstance(kind, type) and issubclass(kind, v2.Transform)]
    if name not in names:
        hint = did_you_mean(name, names)
        raise ConfigError(f"augment.steps: torchvision.transforms.v2 has no transform {name}; {hint}")
    try:
        return vars(v2)[name](**{str(key): value for key, value in arguments.items()})
    except Exception as error:
        raise ConfigError(f"augment.steps: {name} does not take these arguments: {first_line(error)}") from error
