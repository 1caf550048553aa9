"""The composition root: which adapter stands behind which port.

A module for each thing that is composed, so that a function loads at its cold start only
what it is made of.
"""
