"""A worker that beats is never silent; one that does not is told once, at the look at which patience ends."""

import pytest

from fedexp.training.workers import heartbeat


def test_looks_are_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(heartbeat, "PATIENCE", 3)
    ours = heartbeat.Heartbeat(3)
    told = []
    for look in range(8):
        ours.beats[1] = look
        told.append(ours.silent_workers())
    assert told == [[], [], [], [2], [], [], [], []]


def test_who_came_back_may_fall_silent_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(heartbeat, "PATIENCE", 1)
    ours = heartbeat.Heartbeat(2)
    told = []
    for beat in (0, 0, 1, 1):
        ours.beats[1] = beat
        told.append(ours.silent_workers())
    assert told == [[], [1], [], [1]]
