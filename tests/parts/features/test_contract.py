"""What every extractor of features must keep, found from conf/."""

import pytest
from composing import options
from preparation import Preparation


@pytest.mark.parametrize("word", [f"features={name}" for name in options("features")])
class TestFeatures(Preparation):
    pass
