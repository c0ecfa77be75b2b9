"""Audits: tests of the privacy that the ledger promises."""
