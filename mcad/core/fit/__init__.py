"""Whether a gang fits, and why not.

fit             the verdict on a gang: sums, each pod set, all pod sets together
domains, domain_counts   the verdict on a gang whose pods have to be close together
topology_levels  the levels of a cluster's topology, for gangs that prefer a domain or ask for none
greedy, exact   the two searches for a placement
own_nodes       another placement, where sets on one node could strand each other
prospect, memory   the findings about a shape, and how long they are kept
questions       the same verdicts for users; nothing is remembered
queueing_hints  which refused shapes may fit after a change
audit           recomputes the books, for tests
"""
