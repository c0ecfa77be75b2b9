"""Modules of one's own: imported by their dotted names, and again when their files change."""
