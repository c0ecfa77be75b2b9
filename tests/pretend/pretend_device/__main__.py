"""`python -m pretend_device run ...`: the command line on the pretend device."""

import sys

from pretend_device import substitute

substitute()

from fedexp.cli import main  # noqa: E402

sys.exit(main())
