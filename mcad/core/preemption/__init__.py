"""Which AppWrappers are evicted, for which one.

preemption      the search for a set of victims
victims         which may be victims, in which order
evicting        how an eviction is told, begun and ended
eviction_pace   how many in a minute
"""
