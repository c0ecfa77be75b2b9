"""Whether a local rule can step with a rate of its own for each row: found by trying it."""

import torch

from fedexp.parts.local.contract import LocalRule


def takes_columns(rule: LocalRule, parameters: int) -> bool:
    """Whether rows of so many `parameters` that step at a column of rates move as each does at its own rate."""
    w = torch.linspace(-1, 1, 2 * parameters).view(2, -1)
    rates = (rule.lr, rule.lr / 2)
    try:
        together = stepped(rule.at(torch.tensor(rates)[:, None]), w)
        alone = torch.cat([stepped(rule.at(rate), row[None]) for rate, row in zip(rates, w, strict=True)])
    except Exception:  # whatever a rule of the user's own makes of a column
        return False
    return together.shape == alone.shape and torch.allclose(together, alone, rtol=1e-4, atol=1e-6)


def stepped(rule: LocalRule, w: torch.Tensor) -> torch.Tensor:
    """What two steps make of the rows `w [R, P]`, `[R, P]`."""
    w, anchor, every = w.clone(), w.flip(1), torch.ones((len(w), 1))
    slots = torch.zeros((rule.slots, *w.shape))
    rule.fill(slots, anchor)
    for number in (1.0, 2.0):
        rule.update(w, rule.direction(rule.clipped(w.sin()), w, anchor), slots, torch.tensor(number), every)
        rule.pull(w, anchor, every)
    return w
