"""Parts that `fedexp new` writes under another name, with their options, where none of ours is small enough to copy.

They import what parts of users import, and are checked like all other code.
"""
