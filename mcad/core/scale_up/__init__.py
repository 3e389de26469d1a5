"""Nodes that an autoscaler is asked for (core R14).

asking          which AppWrappers ask
keep            the life of their reservations, and of the requests
observed        what the controller reports about requests
"""
