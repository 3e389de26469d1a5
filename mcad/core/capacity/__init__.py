"""Capacity: what the nodes have, what is promised on them, and what fits. Entrance: ``Capacity``.

facade          Capacity, the only thing that the dispatcher uses
ledger, pools   nodes and their free room; the nodes that one placement constraint admits
tails, news     those nodes sorted, and which of them gained room since the last look
spare           what is free on nodes in claims, claims aside
shapes, podclass, placement   what gangs demand; pods that are equal for kube-scheduler; who
                              admits whom
prospects, memory, sleepers   what this capacity made of a shape, how long it remembers, and what
                              wakes a refused one
glance, copies                the same questions from people, which leave no trace
whatif, enough, tentative, needed   where a gang would go if others left, tried on copies
fit, packing, mixed           the verdict on a gang: sums, each set, all sets together
roster, allotments, reservations, arrears   live pods, what is promised and not bound yet, and
                              promises without a node
ownpods, needs  questions about the pods of an AppWrapper, and about those that it still lacks
report, audit   the books for people, and the books recomputed
resources, ports, limits   arithmetic on amounts, host ports among them; bounds of the work
"""

from mcad.core.capacity.facade import NOTHING_TOLD, Capacity, Glance, NodeReport, Shape, Wants

__all__ = ["NOTHING_TOLD", "Capacity", "Glance", "NodeReport", "Shape", "Wants"]
