"""Whether a gang fits, and why not. Entrance: ``Capacity``.

facade          Capacity: the books of nodes and what is assumed on them, as one
fit             the verdict on a gang: sums, each set, all sets together
packing, mixed  greedy, and exact
shapes          what gangs demand
prospects, memory   what was found out about a shape, and how long that is remembered
sleepers        which refused shapes may fit after a change
limits          the bounds of the work
report, audit   the books for people, and the books recomputed
"""
