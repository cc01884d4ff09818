"""The control side: the /_emulator routes, by which tests script and inspect an emulator.

Law: nothing below knows it. The API serves as before when this package is deleted.
"""
