"""Dry runs: where a gang would go if other AppWrappers were removed.

removal         which AppWrappers have to be removed, each of them needed
snapshot        nodes and shares without the removed AppWrappers
way             whether the gang has room on these nodes, and where
quota           whether the gang's shares suffice
"""
