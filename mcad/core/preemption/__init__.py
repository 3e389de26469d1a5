"""Which AppWrappers are evicted, and for which AppWrapper.

search          the search for a set of victims
targets         which AppWrappers have to be evicted
rights          by which right each victim may be evicted, and in which order
eviction        how an eviction is announced, begun and ended
"""
