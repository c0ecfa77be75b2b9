"""Ends a run when the main metric on the test data reaches a target: to count the rounds until then, for nothing else.

Who ends a run by its test data must not report how good its model is on them. The round in which a target is reached
(`roa@x`) is the same as in a run that goes on, and this is what published tables of rounds tell.
"""

from fedexp.parts.stop.target import Target


class TargetOnTest(Target):
    """A value of the main metric to reach on the test data: of one from 0 to 1, 0.95 unless it is given."""

    data = "test"
    needs_validation = False
    needs_test = True
