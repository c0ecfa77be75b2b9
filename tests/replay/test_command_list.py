"""The commands of runs: words in common stand once, for all runs and for groups of them."""

from fedexp.replay.command_list import describe_commands


def test_words_in_common_stand_once_by_hand():
    runs = {("a=1", "b=2"): ("first", "1"), ("a=1", "c=3"): ("second", "0.5")}
    lines = describe_commands(runs, [2]).splitlines()
    assert lines[0].startswith("`fedexp run -m a=1 seed=0,1`, and behind it the words of a run")
    assert lines[1:] == ["", "* first: `b=2`, 1 min", "* second: `c=3`, 0.5 min"]


def test_three_runs_with_three_words_in_common_are_a_group():
    runs = {("x=0",): ("alone", "1"), **{("a=1", "b=1", "c=1", "d=1", f"e={n}"): (f"run {n}", "2") for n in range(3)}}
    lines = describe_commands(runs, [1, 3]).splitlines()
    assert lines[0].startswith("`fedexp run -m seed=0` (up to 3 seeds where a cell has more), and behind it")
    assert lines[2:] == [
        "* alone: `x=0`, 1 min",
        "",
        "Behind `a=1 b=1 c=1`:",
        "",
        *(f"* run {n}: `d=1 e={n}`, 2 min" for n in range(3)),
    ]
