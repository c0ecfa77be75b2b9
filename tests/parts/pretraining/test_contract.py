"""What every pretraining must keep, found from conf/."""

import pytest
from composing import options
from preparation import Preparation


@pytest.mark.parametrize("word", [f"pretraining={name}" for name in options("pretraining")])
class TestPretraining(Preparation):
    pass
