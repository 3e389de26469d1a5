"""Dry runs: where a gang would go if others left.

removal         nodes and quota together
nodes, quota    each of them
slot_counts, needed, tentative   what has to leave: by counts, by necessity, by trying on copies
"""
