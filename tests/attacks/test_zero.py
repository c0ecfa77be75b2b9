from fedexp.attacks.forging import Scene
from fedexp.attacks.zero import Zero


def test_by_hand(scene: Scene):
    assert Zero().forge(scene)[0].tolist() == [[0, 0], [0, 0]]
