"""What a run prints while it lasts: on a terminal a bar with log lines above it, elsewhere plain lines.

The log file has a line for each round in either case. Of the points of a sweep the console gets only what may not be
meant, each such note once, and the bar.
"""

import logging
import sys
from contextlib import ExitStack
from typing import Any

from fedexp.maths.curve_metrics import main_metric
from fedexp.process import logs, terminal

log = logging.getLogger("fedexp.run.run")

ROUND = "of_a_round"  # marks the lines that the bar replaces


class Progress:
    """Prints the progress of a run, round by round."""

    def __init__(self, rounds: int, done: int) -> None:
        self.rounds = rounds
        self.bar, self.is_point = None, logs.notes_are_shared()
        self.log_redirection = ExitStack()
        if sys.stderr.isatty() and logs.on_console() and terminal.has_size(sys.stderr):
            from tqdm import tqdm
            from tqdm.contrib.logging import logging_redirect_tqdm

            leave = not self.is_point
            self.bar = tqdm(total=rounds, initial=done, unit="round", dynamic_ncols=True, file=sys.stderr, leave=leave)
            self.log_redirection.enter_context(logging_redirect_tqdm())
            logs.leave_out_on_terminals(ROUND)
        logs.leave_out_on_console(logs.FILE_ONLY)

    def round(self, row: dict[str, Any]) -> None:
        """Reports a finished round."""
        kind = "test" if row.get("test_loss") is not None else "validation"
        name, loss = main_metric(row, kind), row.get(f"{kind}_loss")
        label, value = "" if kind == "test" else "validation ", row.get(f"{kind}_{name}")
        score_text = f"{label}{name} {value:.4f}" if value is not None and value == value else None
        if self.bar is not None:
            if score_text is not None:
                self.bar.set_postfix_str(f"{score_text}, loss {loss:.4f}", refresh=False)
            self.bar.update()
        suffix = "" if score_text is None else f"  {score_text}  loss {loss:.4f}"
        log.info("round %s/%d%s", row["round"], self.rounds, suffix, extra={ROUND: True, **self._extra()})

    def say(self, text: str) -> None:
        """Prints one message."""
        log.info(text, extra=self._extra())

    def note(self, text: str) -> None:
        """Prints what may not be meant; the console gets it once a sweep."""
        log.info(text, extra={logs.FILE_ONLY: True} if logs.is_repeated(text) else {})

    def _extra(self) -> dict[str, bool]:
        return {logs.FILE_ONLY: True} if self.is_point else {}

    def close(self) -> None:
        """Closes the bar where it stands."""
        if self.bar is not None:
            self.log_redirection.close()
            self.bar.close()
            self.bar = None
