import numpy as np
import pytest
import torch
from torch.nn import functional as F

from fedexp.core.errors import ConfigError
from fedexp.parts.augment.crop_flip import CropFlip, crop_and_flip
from fedexp.parts.dataset.contract import Facts

IMAGE = torch.arange(1.0, 10).view(1, 3, 3, 1)  # 1 2 3 / 4 5 6 / 7 8 9
BLACK = torch.tensor([-9.0])


def one(down: int, right: int, flip: bool, black: torch.Tensor | None) -> list[list[float]]:
    moved = crop_and_flip(IMAGE, torch.tensor([down]), torch.tensor([right]), torch.tensor([flip]), black)
    return moved[0, :, :, 0].tolist()


def test_by_hand():
    assert one(0, 0, False, BLACK) == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert one(1, 0, False, BLACK) == [[-9, -9, -9], [1, 2, 3], [4, 5, 6]]
    assert one(0, -1, False, BLACK) == [[2, 3, -9], [5, 6, -9], [8, 9, -9]]
    assert one(0, -1, True, BLACK) == [[-9, 3, 2], [-9, 6, 5], [-9, 9, 8]]
    assert one(1, 0, False, None) == [[4, 5, 6], [1, 2, 3], [4, 5, 6]]
    assert one(0, -1, True, None) == [[2, 3, 2], [5, 6, 5], [8, 9, 8]]


@pytest.mark.parametrize("padding", ["zeros", "reflect"])
def test_as_padding_cropping_and_flipping_one_by_one(padding):
    images, uniform = torch.rand(20, 3, 8, 6), torch.rand(20, 3)
    mean, std = torch.rand(3, 1, 1), torch.rand(3, 1, 1) + 0.1
    found = CropFlip(pad=2, padding=padding).batch((images - mean) / std, uniform, mean, std)
    mode = {"zeros": "constant"}.get(padding, padding)
    for image, drawn, got in zip(images, uniform, found, strict=True):
        top, left = (2 - (int(5 * number) - 2) for number in drawn[:2])
        crop = F.pad(image[None], (2, 2, 2, 2), mode=str(mode))[0, :, top : top + 8, left : left + 6]
        expected = crop.flip(-1) if drawn[2] < 0.5 else crop
        torch.testing.assert_close(got, (expected - mean) / std)


def test_every_place_is_drawn_alike():
    drawn = torch.linspace(0, 1, 9001)[:-1]
    image = torch.arange(9.0).expand(len(drawn), 1, 1, 9)
    uniform = torch.stack([torch.full_like(drawn, 0.5), drawn, torch.ones_like(drawn)], dim=1)
    found = CropFlip(pad=4).batch(image, uniform, torch.zeros(1, 1, 1), torch.ones(1, 1, 1))
    middle = np.bincount(found[:, 0, 0, 4].long().numpy())
    assert middle.tolist() == pytest.approx([1000] * 9, abs=2)  # the last bit of a draw may decide


def test_no_padding_and_no_flips_leave_images_as_they_are():
    images = torch.rand(4, 5, 3, 8, 8)
    found = CropFlip(pad=0, flip=0.0).batch(images, torch.rand(4, 5, 3), torch.zeros(1, 1, 1), torch.ones(1, 1, 1))
    assert torch.equal(found, images)


def test_what_are_no_images_is_refused():
    with pytest.raises(ConfigError, match=r"augment=crop_flip needs images .* got \(5,\); use augment=none"):
        CropFlip().refuse(Facts((5,), 2, 10))
    with pytest.raises(ConfigError, match=r"augment.pad must be less than the images' height and width, 4, got 4"):
        CropFlip().refuse(Facts((1, 4, 9), 2, 10))
