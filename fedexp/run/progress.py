"""What a run says while it lasts: a bar on a terminal, plain lines elsewhere; both go to the log file as lines."""

import logging
import sys
from typing import Any

from fedexp.core import logs

log = logging.getLogger("fedexp.run.run")


class Progress:
    """Tells the rounds. On a terminal the log's console lines give way to a bar."""

    def __init__(self, rounds: int, done: int) -> None:
        self.rounds = rounds
        self.bar = None
        if sys.stderr.isatty() and logs.on_console():
            from tqdm import tqdm

            self.bar = tqdm(total=rounds, initial=done, unit="round", dynamic_ncols=True, file=sys.stderr)

    def round(self, row: dict[str, Any]) -> None:
        """Tells a finished round."""
        kind = "test" if row.get("test_accuracy") is not None else "validation"
        accuracy, loss = row.get(f"{kind}_accuracy"), row.get(f"{kind}_loss")
        label = "" if kind == "test" else "validation "
        accuracy = None if accuracy is None or accuracy != accuracy else accuracy
        if self.bar is not None:
            if accuracy is not None:
                self.bar.set_postfix_str(f"{label}accuracy {accuracy:.4f}, loss {loss:.4f}", refresh=False)
            self.bar.update()
            return
        measured = "" if accuracy is None else f"  {label}accuracy {accuracy:.4f}  loss {loss:.4f}"
        self.say(f"round {row['round']}/{self.rounds}{measured}")

    def say(self, text: str) -> None:
        """One message."""
        log.info(text)

    def close(self) -> None:
        """Leaves the bar where it stands."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None


class Silent(Progress):
    """Tells nobody."""

    def __init__(self) -> None:
        super().__init__(0, 0)
        self.close()

    def say(self, text: str) -> None:
        pass
