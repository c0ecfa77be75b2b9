"""FedBuff (Nguyen et al. 2022, arXiv 2106.06639, algorithm 1): a step of the server once B uploads have arrived.

w <- w + eta / B * sum of the B updates, each times 1 / sqrt(1 + tau); K clients train at a time. FedAsync (Xie et al.
2019, arXiv 1903.03934) is B = 1 with `mixing`. `refill=arrival` fills a place as soon as it is free, `refill=step` all
free places after the step.

Deviations: a client is asked at most once in a step, so with `refill=arrival` and fewer than K + B - 1 clients some
places stay free until the next step. Clients are chosen once a step: with `refill=arrival`, where some drop out, go or
are too stale, K + B - 1 more are chosen than may count, and if more than these are lost, places stay free, too. If
nobody is on the way any more, the step has fewer than B uploads, and takes their mean.
"""

from typing import Annotated, Literal

from fedexp.parts import ConfigError, Context, OverlappingPacing, Range, StepRule


class Buffered(OverlappingPacing):
    """`clients` K train at a time; a step takes `buffer` B uploads."""

    buffer: Annotated[int, Range(1)] = 5
    refill: Literal["arrival", "step"] = "arrival"

    def check(self) -> None:
        super().check()
        if self.refill == "step" and self.buffer > self.clients:
            raise ConfigError(
                f"Buffered.buffer must be at most clients={self.clients} with refill=step, got {self.buffer}: no more "
                "can arrive in a step; lower it or use refill=arrival"
            )

    def rule(self, ctx: Context) -> StepRule:
        refills, is_shared = self.refill == "arrival", ctx.fleet.shares_link
        return StepRule(self.clients, self.buffer, None, refills, is_shared, self.max_staleness)

    def describe(self, clients: int, usual: str) -> str:
        uploads = "1 upload" if self.buffer == 1 else f"{min(self.buffer, clients)} uploads"
        return f"{self.clients} of {clients} clients at a time, a step after {uploads}"

    def most_uploads(self, participants: int) -> int:
        return self.buffer

    def capacity(self, in_flight: int, loses: bool) -> int:
        free = super().capacity(in_flight, loses)
        if self.refill == "step":
            return free
        refills = self.buffer - 1
        return free + refills + (self.clients + refills if loses else 0)
