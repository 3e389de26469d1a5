"""Bounds of the fit test and of snapshots, each with its reason.

A bound is counted work, never time: the same events give the same verdicts on any machine (R1).
"""

CHECKS_MAX = 20_000
"""Steps, about a microsecond each, for tests of pod signatures in one round of queueing hints after
nodes rose; beyond, all classes that are left are requeued, and tried in the cycles to come."""

REQUEUE_STEPS = 5
"""The work that a requeued shape counts for."""

POOLS_TESTED_PER_STEP = 2
"""Pools in which nothing may fit by now, for one step: thousands may share a node that rose."""

SUMS_PER_STEP = 4
"""Sums of pools that are compared with the least demand that waits for them, for one step."""

CATCH_UP_MAX = 64
"""Changed nodes that are looked at one by one; beyond, a look at all nodes is about as cheap."""

NEWS_MAX = 50_000
"""Pairs of a node that rose and a pod signature that knew all room in its pool: a microsecond if
there is room, else a tenth. Beyond, the other signatures count anew in the cycles to come."""

LOST_STEPS = 3
"""The work that each of these counts for when it loses track."""

FALLEN_PER_NODE = 8
"""Fallen nodes that searches pass over, per node of a pool, before its sorted lists are made anew:
sorting a node into three lists costs about as much as passing over it so often."""

SAMPLED = 8
"""One of so many nodes that are passed is tested for having fallen: testing all doubles the cost.
"""

ESTIMATED = 32
"""One of so many nodes is looked at to guess whether another sorted list would be shorter."""

RISEN_SHARE = 8
"""Inserting a node into a sorted list costs as much as sorting about so many nodes."""

ROOM_MAX = 64
"""Nodes with room that a pod signature remembers; beyond, only their sum. 10,000 signatures on
5,000 nodes would otherwise remember 50 million pairs."""

TAIL_SHORT = 64
"""Candidates that are few enough not to sort a pool by another resource for fewer."""

SCAN_STEP = 16
"""Nodes that a scan looks at before it tests whether it has found enough; doubled each time."""

VERDICT_STEPS = 20
"""The work that a verdict counts for, besides further parts and the nodes it looks at."""

PART_STEPS = 5
"""The work that each further part of a gang counts for in a verdict."""

DOMAINS_MAX = 512
"""Topology domains of one level with slots enough that are tried in one verdict, each with a pool
of its own. A zone has a hundred racks; a level of single nodes has as many domains as nodes."""

DOMAIN_STEPS = 20
"""The work that the pool of a gang in a domain counts for."""

DOMAINS_WORK = 4_000
"""The work of one verdict in topology domains in one pass, of one to five microseconds a step. A
gang that nearly fits in each of 512 racks takes 30,000: the next pass goes on with the next rack.
"""

DOMAINS_WORK_MAX = 200_000
"""The work of such a verdict in all its passes, which begin with it: those behind wait. Beyond, it
is "undecided"."""

LEVELS_KEPT = 16
"""Levels of which it is remembered what is free in each domain; users may name any label."""

VARIANTS_MAX = 256
"""Combinations of topology domains that are tried for a gang with several groups of pod sets."""

EXACT_STATES_MAX = 4096
"""Combinations of placed counts that the exact search may have to tell apart. A head, a dozen
helpers and a thousand workers need 26; three sets of 64 equal to one another need 4,225."""

EXACT_WORK_MAX = 20_000
"""Steps of one exact search, about a microsecond each. A head and its workers at the edge of 5,000
nodes take 6,000, three sets of dozens easily too many: then the verdict is "undecided" (R1)."""

FEW_PARTS = 4
"""Of more parts a gang has dozens, as a rule, and then an exact search is hopeless anyway."""

LOOKS_MAX, LOOKS_OF_MANY = 15_000, 8_000
"""Nodes that one verdict looks at for a gang of few parts, or of many: first for each part alone,
and again to place them greedily, half a microsecond each. Three parts on 5,000 nodes need 15,000.
Beyond, the verdict is "undecided" (R1)."""

CANDIDATES_MAX, CANDIDATES_OF_MANY = 15_000, 4_000
"""Nodes that are sorted for the second greedy placement, a microsecond each. Of more it has the
likeliest for each part, and is "undecided" without a plan."""

GREEDY_WORK_PER_PASS_MAX = 1_000_000
"""Nodes that all greedy placements of one cycle look at, half a microsecond each. Larger than the
bound of the exact searches, so that gangs that nearly fit do not hide those that simply fit."""

EXACT_WORK_PER_PASS_MAX = 300_000
"""Steps of all exact searches of one cycle, so that no cycle delays the renewal of the lease or
keeps a caller waiting for a second. The next cycle continues."""

APART_ROWS_MAX = 20_000
"""Nodes that are looked at to find out whether the pods of one gang can strand each other, each
for every set that may come there, half a microsecond each. Beyond, they are not kept apart."""

IN_FLIGHT_ROWS_MAX = 6_000
"""Nodes that are looked at in one cycle to find out whether gangs in flight can strand each other,
three microseconds each. Beyond, gangs that fit start without that test."""

SNAPSHOT_PAIRS_MAX = 20_000
"""Pairs of a node and a part of the gang that a snapshot looks at, half a microsecond each: four
parts on 5,000 nodes. Beyond, it has only so many nodes as keep to this."""

WHAT_IF_SEARCH_MAX = 10_000
"""Steps of one exact search in a snapshot, of which a plan makes dozens; a head and its workers at
the edge of 5,000 nodes take 6,000. Undecided counts as no."""

WHAT_IF_WORK_MAX = 15_000
"""Steps of all those searches for one plan, which is made in one step of the core; beyond, no
victim is spared any more."""

SHIFT_STEPS = 3
"""The work that removing an AppWrapper in a snapshot, or restoring it, counts for."""

WHAT_IF_LOOKS_MAX = 30_000
"""Looks at a node for one part of the gang after something was removed there or restored, in one
plan, half a microsecond each: 10,000 removed AppWrappers for three parts. Beyond, none is removed
and none is spared any more."""

LISTED_PER_STEP = 8
"""Nodes that a search in a snapshot puts in order for one part, for one step."""

FILLS_MAX = 256
"""Ways to fill one node with pods of several parts; each costs a microsecond, once for all nodes on
which as much is free. Beyond, a coarser bound is used."""

FILLED_PARTS_MAX = 8
"""Parts of a gang for which ways to fill nodes are tried: of more there are too many ways."""

EARMARKED_NODES_MAX = 256
"""Nodes set aside for unplaced pods; beyond, only the sums protect them. Every verdict looks at
each of these nodes."""

EARMARKED_CLASSES_MAX = 8
"""Signatures of unplaced pods, oldest first, for which nodes are set aside in a cycle. Each costs a
look at its whole pool; the others are still subtracted from every sum."""

PORTS_KEPT_MIN = 64
"""Host ports before unused ones are looked for. Each is an entry at every node."""

PORTS_MAX = 256
"""Host ports that are counted at a time; real clusters use a few dozen, but any pod may request
any. Pods with a further port are kept apart only from pods of their own set."""

POOLS_KEPT_MIN = 64
"""Pools before unused ones are looked for."""

POOLS_PER_STEP = 2
"""Pools in which what is used on a node is counted, for one step."""

MEMBERSHIPS_PER_POOL = 32
"""Pairs of a node and a pool that holds it, per pool, that are looked at to find which pools share
nodes with one: 30 nanoseconds each. Beyond, all of them count as such."""

CLAIMED_MEMBERSHIPS_MAX = 100_000
"""Pairs of a claimed node and a pool that holds it, 20 nanoseconds each, that are noted in a pass.
Beyond, the nodes of a pool are looked at when it is asked for."""

WITHOUT_MAX = 256
"""Nodes that a pool may lack and be counted as another pool without these: each sum looks at all of
them. A constraint with a longer ``NotIn`` has a pool of its own, of all other nodes."""
