import pytest
import torch
from torchvision.transforms import v2

from fedexp.core.errors import ConfigError
from fedexp.core.torch_generator import seed_torch
from fedexp.parts.augment.transforms import SEED_BASE, Transforms
from fedexp.parts.dataset.contract import Facts

FACTS = Facts((3, 8, 8), 2, 10)
MEAN, STD = torch.full((1, 1, 1), 0.5), torch.full((1, 1, 1), 0.25)


def test_an_image_is_changed_as_by_torchvision_with_its_own_seed():
    pixels, uniform = torch.rand(3, 3, 8, 8), torch.rand(3, 2)
    steps = ({"RandomCrop": {"size": 8, "padding": 2}}, "RandomHorizontalFlip", {"ColorJitter": {"brightness": 0.5}})
    found = Transforms(steps=steps).batch((pixels - MEAN) / STD, uniform, MEAN, STD)
    plain = v2.Compose([v2.RandomCrop(8, padding=2), v2.RandomHorizontalFlip(), v2.ColorJitter(brightness=0.5)])
    for image, drawn, got in zip(pixels, uniform, found, strict=True):
        with seed_torch(int(drawn[0] * SEED_BASE) + SEED_BASE * int(drawn[1] * SEED_BASE)):
            expected = plain(image)
        torch.testing.assert_close(got * STD + MEAN, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (("RandomHorizontalFlipp",), "has no transform RandomHorizontalFlipp; did you mean RandomHorizontalFlip"),
        (("functional",), "has no transform functional"),
        (({"RandomCrop": {"side": 3}},), "RandomCrop does not take these arguments"),
        (({"RandomCrop": {"size": 4}},), r"RandomCrop must give float images \(3, 8, 8\)"),
        (("MixUp",), "MixUp cannot be applied"),
    ],
)
def test_what_will_not_do_is_one_line(steps, words):
    with pytest.raises(ConfigError, match=words) as caught:
        Transforms(steps=steps).refuse(FACTS)
    assert "\n" not in str(caught.value)


def test_wrong_words():
    with pytest.raises(ConfigError, match=r"steps must hold names or \{name: \{argument: value\}\}, got 3"):
        Transforms(steps=(3,))
    with pytest.raises(ConfigError, match="augment=transforms needs images"):
        Transforms(steps=()).refuse(Facts((5,), 2, 10))
