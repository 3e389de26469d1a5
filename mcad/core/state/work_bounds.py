"""The bounds of the capacity half, each with its reason. A bound is counted work, never time (R1).

Replay needs the same verdict for the same events, so nothing here may depend on how fast the
machine is.
"""

CHECKS_MAX = 50_000
"""Steps, about a microsecond each, for finding out what may sleep on after nodes rose; beyond, the
others are woken, and judged within the work of the passes to come."""

CATCH_UP_MAX = 64
"""Changed nodes that are looked at one by one; beyond, a look at all is about as cheap."""

NEWS_MAX = 50_000
"""Pairs of a node that rose and a pod class that knew of all room in their pool: a microsecond if
there is room, else a tenth. Beyond, the classes that are left find out by themselves, within the
work of the passes to come."""

FALLEN_PER_NODE = 8
"""Fallen nodes that searches pass over, for each node of a pool, before its tails are sorted again.
Sorting a node into three tails costs about as much as passing over it so often."""

SAMPLED = 8
"""One of so many nodes that are passed is asked whether it fell: to ask all costs as much again."""

RISEN_SHARE = 8
"""Entering a node into a sorted tail costs as much as sorting about so many."""

ROOM_MAX = 64
"""Nodes with room that a pod class remembers; beyond, it keeps their sum only. 10,000 classes on
5,000 nodes would otherwise remember 50 million pairs."""

TAIL_SHORT = 64
"""Candidates that are few enough not to sort a pool by another resource for fewer."""

SCAN_STEP = 16
"""Nodes that a scan looks at before it asks whether it has found enough; it doubles each time."""

VERDICT_STEPS = 20
"""What a verdict counts for in the work of a pass, besides the nodes it looks at."""

EXACT_STATES_MAX = 4096
"""Combinations of placed counts that the exact search may have to tell apart. A head, a dozen
helpers and a thousand workers need 26; three sets of 64 equal to one another need 4,225."""

EXACT_WORK_MAX = 100_000
"""Steps of one exact search, about a microsecond each. A head and its workers at the edge of 5,000
nodes take 6,000, three sets of dozens easily too many: then the verdict is "undecided" (R1)."""

GREEDY_WORK_PER_PASS_MAX = 1_000_000
"""Nodes that all greedy placements of one pass look at, at half a microsecond each; a gang that
fits needs few. Larger than the bound of the exact searches, so that gangs that nearly fit, however
many, do not hide those that simply do."""

EXACT_WORK_PER_PASS_MAX = 300_000
"""Steps of all exact searches of one pass, so that no pass keeps the process from renewing its
lease or a caller waiting for a second. What is left over is looked at in the next pass."""

WHAT_IF_SEARCH_MAX = 10_000
"""Steps of one exact search for a question of the form "what if others left", of which there are
dozens; a head and its workers at the edge of 5,000 nodes take 6,000. Undecided counts as no."""

WHAT_IF_WORK_MAX = 200_000
"""Steps of all those searches for one question; beyond, none is spared any more."""

NEEDED_KEPT_MAX = 16
"""Of those that could not come back, as many are compared with the next one."""

FILLS_MAX = 256
"""Ways to fill one node with pods of several parts that are looked at; each costs a microsecond,
once for all nodes on which as much is free. Beyond, a coarser bound does."""

EARMARKED_NODES_MAX = 256
"""Nodes set aside for adrift reservations; beyond, only the sums protect them. Every verdict looks
at each of these nodes."""

EARMARKED_CLASSES_MAX = 8
"""Pod classes of adrift reservations, oldest first, that nodes are set aside for in a pass. Each
costs a look at its whole pool; the others are still subtracted from every sum."""

PORTS_KEPT_MIN = 64
"""Host ports that may pile up before unused ones are looked for. Each is an entry at every node."""

PORTS_MAX = 256
"""Host ports that the books have at a time; real clusters use a few dozen, but any pod may ask for
any. Pods of a further one are kept apart from those of their own set only."""

POOLS_KEPT_MIN = 64
"""Pools that may pile up before unused ones are looked for."""
