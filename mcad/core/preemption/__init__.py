"""Which AppWrappers are evicted, and for which one.

search          the search for a set of victims
targets         which AppWrappers may be victims, in which order
eviction        how an eviction is announced, begun and ended
"""
