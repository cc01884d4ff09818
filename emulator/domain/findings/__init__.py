"""Findings: rules of good use of the API that a client broke, told from what it asked and what happened.

Law: pure. Observations go in, findings come out; the same observations give the same findings.
"""
