import numpy as np
import pytest
import torch

from fedexp.core.errors import ConfigError
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.federation.rotation import Rotation, rotate_images

SQUARE = torch.tensor([[1, 2], [3, 4]], dtype=torch.uint8)[None, None]


def seen(client: int, **values: list[float]) -> list[list[int]]:
    federation = Rotation(clients=8, **values)  # pyright: ignore[reportArgumentType]
    return federation.shift_features(SQUARE, client, 8, 255.0, np.random.default_rng(0))[0, 0].tolist()


def test_quarters_by_hand_counterclockwise():
    assert [seen(client) for client in range(4)] == [
        [[1, 2], [3, 4]],
        [[2, 4], [1, 3]],
        [[4, 3], [2, 1]],
        [[3, 1], [4, 2]],
    ]
    assert seen(5) == seen(1)
    assert seen(0, angles=[-90]) == seen(3)


def test_other_angles_keep_the_shape_and_type_and_leave_the_corners_black():
    x = torch.full((2, 3, 9, 9), 200, dtype=torch.uint8)
    turned = rotate_images(x, 45.0)
    assert turned.shape == x.shape
    assert turned.dtype == torch.uint8
    assert turned[:, :, 4, 4].eq(200).all()
    assert turned[:, :, 0, 0].eq(0).all()


def test_the_direction_of_other_angles_is_that_of_the_quarters():
    x = torch.rand(1, 1, 8, 8)
    assert torch.equal(rotate_images(x, 90.0), rotate_images(x, 90.0 + 1e-9))


def test_groups_are_the_angles():
    assert Rotation(clients=6).groups(6).tolist() == [0, 1, 2, 3, 0, 1]


@pytest.mark.parametrize(
    ("shape", "angles", "words"),
    [
        ((10,), [0], "needs images"),
        ((1, 4, 6), [0, 90], "only square ones keep their shape"),
        ((1, 4, 6), [0, 270], "only square ones keep their shape"),
        ((1, 4, 6), [0, 180], ""),
        ((1, 4, 4), [0, 90], ""),
    ],
)
def test_what_cannot_be_rotated_is_refused_before_loading(shape: tuple[int, ...], angles: list[float], words: str):
    federation, facts = Rotation(clients=2, angles=tuple(angles)), Facts(shape=shape, classes=2, train_size=9)
    if not words:
        federation.refuse(facts)
        return
    with pytest.raises(ConfigError, match=words):
        federation.refuse(facts)


def test_an_angle_must_be_given():
    with pytest.raises(ConfigError, match="at least one angle"):
        Rotation(clients=2, angles=())
