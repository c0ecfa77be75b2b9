from fedexp.parts.attack.forging import AttackerKnowledge
from fedexp.parts.attack.sign_flip import SignFlip


def test_by_hand(scene: AttackerKnowledge):
    forged, _ = SignFlip(scale=2.0).forge(scene)
    assert forged.tolist() == [[-2, -2], [-6, -10]]
