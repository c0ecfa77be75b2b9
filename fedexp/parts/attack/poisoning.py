"""Data poisoning: malicious clients train honestly on data that they changed before the run."""

from fedexp.parts import Attack, Context, Memory, Uploads


class DataPoisoning(Attack):
    """An attack on the clients' own data; each round counts the malicious participants."""

    def tamper(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        return uploads, {**memory, "columns": {"malicious": int(ctx.malicious(uploads.owner).sum())}}
