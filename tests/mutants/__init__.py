"""Builds with one plausible fault each, and the tests that find it: ``make mutants``.

A test suite that no fault can turn red proves little. Each entry of the tables beside this file
replaces one text of one module by a faulty one and names the tests that must fail then.
"""
