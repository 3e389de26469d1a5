"""Nodes that an autoscaler is asked for (core R13).

asking          which AppWrappers ask
keep            the life of their reservations, and of the requests
shown           what the status says of a request
observed        what the controller reports about requests
"""
