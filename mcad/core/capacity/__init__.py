"""Capacity: what the nodes have, what is promised on them, and what fits. Entrance: ``Capacity``.

facade          Capacity, the only thing that the dispatcher uses
ledger, pools   nodes and their free room; the nodes that one placement constraint admits
podclass, shapes, placement   pods that are equal for kube-scheduler; gangs; who admits whom
fit, packing, mixed           the verdict on a gang: sums, each set, all sets together
roster, claims, reservations, arrears   live pods, what is promised and not bound yet, and
                              promises without a node
report, audit   the books for people, and the books recomputed
"""

from mcad.core.capacity.facade import Capacity, CapacityReport, NodeReport, Shape

__all__ = ["Capacity", "CapacityReport", "NodeReport", "Shape"]
