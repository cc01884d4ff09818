"""Exploration: a user's own test, run again while the API behaves in ways it may behave.

`plan` is what the emulator does in such a run, in one module for each mode; `explorer` runs the tests
again. Nothing else needs this package: without it an emulator serves as ever.
"""
