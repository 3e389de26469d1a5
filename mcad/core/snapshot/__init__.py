"""Dry runs: where a gang would go if others were removed.

removal         which AppWrappers have to be removed, each of them needed
snapshot        nodes and shares without the removed AppWrappers
in_domains      the same for a gang that needs a topology domain
slot_counts     whether there is room, by counts
tentative       where the gang goes, repaired while AppWrappers are restored
quota           the shares
"""
