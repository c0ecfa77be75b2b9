import pytest

from fedexp.core.errors import ConfigError
from fedexp.parts.stop.privacy_budget import PrivacyBudget

OVER = "one more round could cost epsilon 3.25, more than the budget of 3"


@pytest.mark.parametrize(("following", "reason"), [(2.9, None), (3.0, None), (3.25, OVER)])
def test_the_round_that_could_overdraw_is_not_run(following: float, reason: str | None):
    told, memory = PrivacyBudget(epsilon=3).judge({"privacy.epsilon_next": following}, {"kept": 1})
    assert (told, memory) == (reason, {"kept": 1})


def test_a_budget_must_be_given():
    with pytest.raises(ConfigError, match=r"stop\.epsilon must be given where privacy\.epsilon is not"):
        PrivacyBudget()
