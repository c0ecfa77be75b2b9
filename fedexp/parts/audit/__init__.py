"""Audits: what a run says of its privacy beside what the ledger promises."""
