"""The part of each group that `fedexp new` writes under another name, with its option: one idea, one number, the verbs.

They import what parts of users import, and are checked like all other code.
"""
