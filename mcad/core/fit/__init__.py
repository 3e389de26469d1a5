"""Whether a gang fits, and why not. Entrance: ``Capacity``.

capacity        the nodes and the assumed pods as one
fit             the verdict on a gang: sums, each pod set, all pod sets together
greedy, exact   the two searches for a placement
shape           what a gang demands
feasible, shape_cache   what was found out about a shape, and how long it is kept
queueing_hints  which refused shapes may fit after a change
bounds          bounds of the work
audit           recomputes the books, for tests
"""
