"""Dry runs: where a gang would go if others left.

departures      nodes and quota as one
whatif, quota_whatif   each of them
enough, needed, tentative   which leave enough room, which of them have to, tried on copies
copies, glance  copies for questions of people, which leave no trace
spare           what is free on nodes in claims, claims aside
"""
