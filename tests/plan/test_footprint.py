"""What a run holds is told by the system, or not at all."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from fedexp.plan import table
from fedexp.plan.footprint import peak_mb


def test_the_peak_is_that_of_this_process(monkeypatch: pytest.MonkeyPatch):
    assert peak_mb() > 50
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_mb() == 0.0


def test_what_the_system_does_not_tell_is_no_number():
    nothing: Any = SimpleNamespace(memory_mb=None, gave_up=None)
    assert table._memory(nothing) == "- (this system does not tell)"
