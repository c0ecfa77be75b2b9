"""Data poisoning: malicious clients train honestly on data that they have changed once, before the run."""

from dataclasses import dataclass

from fedexp.context import Context
from fedexp.roles import Attack
from fedexp.values import Memory, Uploads


@dataclass(frozen=True, kw_only=True)
class Poisoning(Attack):
    """An attack on the clients' own data; each round counts the malicious participants."""

    def tamper(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        return uploads, {**memory, "columns": {"malicious": int(ctx.malicious(uploads.owner).sum())}}
