"""Bounds of the fit test and of snapshots, each with its reason.

A bound is counted work, never time: the same events give the same verdicts on any machine (R1).
"""

VERDICT_STEPS = 20
"""The work of a verdict, besides further parts and the nodes it looks at."""

PART_STEPS = 5
"""The work of each further part of a gang in a verdict, or of each part that greed places."""

DOMAINS_MAX = 512
"""Topology domains of one level with slots enough that are tried in one verdict, each as a shape of
its own. A zone has a hundred racks; a level of single nodes has a domain for each node."""

DOMAIN_STEPS = 20
"""The work of the shape of a gang in a domain."""

DOMAINS_WORK = 4_000
"""The work of one verdict in topology domains in one pass, of one to five microseconds a step. A
gang that nearly fits in each of 512 racks takes 30,000: the next pass goes on with the next rack.
"""

DOMAINS_WORK_MAX = 200_000
"""The work of such a verdict in all its passes, which begin with it: AppWrappers behind wait.
Beyond, it is "undecided"."""

VARIANTS_MAX = 256
"""Combinations of topology domains that are tried for a gang with several groups of pod sets."""

EXACT_STATES_MAX = 4096
"""Combinations of placed counts that the exact search may have to tell apart. A head, a dozen
helpers and a thousand workers need 26; three sets of 64 equal to one another need 4,225."""

EXACT_WORK_MAX = 20_000
"""Steps of one exact search, about a microsecond each. A head and its workers at the edge of 5,000
nodes take 6,000, three sets of dozens easily too many: then the verdict is "undecided" (R1)."""

EXACT_WORK_PER_PASS_MAX = 300_000
"""Steps of all exact searches of one cycle, so that no cycle delays the renewal of the lease or
keeps a caller waiting for a second. The next cycle continues."""

WHAT_IF_SEARCH_MAX = 10_000
"""Steps of one exact search in a snapshot, of which a plan makes dozens; a head and its workers at
the edge of 5,000 nodes take 6,000. Undecided counts as no."""

WHAT_IF_WORK_MAX = 15_000
"""Steps of all these searches for one plan, which is made in one step of the core; beyond, no
further victim is spared."""

SHIFT_STEPS = 3
"""The work of removing an AppWrapper in a snapshot, or restoring it."""

WHAT_IF_LOOKS_MAX = 30_000
"""Looks at a node for one part of the gang after a removal or a restore there, in one plan, half a
microsecond each: 10,000 removed AppWrappers for three parts. Beyond, no AppWrapper is removed or
spared any more."""

EARMARKED_NODES_MAX = 256
"""Nodes set aside for unplaced pods; beyond, only the sums protect them."""

EARMARKED_CLASSES_MAX = 8
"""Classes of unplaced pods, oldest first, for which nodes are set aside in a cycle. Each costs
about a verdict; the other classes are still subtracted from every sum."""

PORTS_MAX = 256
"""Host ports that are counted at a time; real clusters use a few dozen, but any pod may request
any. Pods with a further port are kept apart only from pods of their own set."""

ROWS_PER_STEP = 100
"""Nodes that one vector operation of a verdict looks at in a step, a few operations together."""

RISES_MAX = 256
"""Nodes that gained room whose gains are added to the bounds of pod classes; beyond, all bounds are
estimated anew, by sums."""

CONSTRAINTS_SUMMED_MAX = 256
"""Different constraints for which these sums are made, 50 microseconds each on 5,000 nodes."""

COLUMNS_KEPT_MIN = 64
"""Resources and host ports before unused columns are looked for. Each is a number per node."""

SAFETY_STEPS = 30
"""The work of testing whether one set of pods can strand another, besides the nodes."""

APART_WORK_MAX = 10_000
"""The work of testing whether the pods of one gang can strand each other. Beyond, they are not kept
apart."""

IN_FLIGHT_WORK_MAX = 12_000
"""The work in one cycle of testing whether gangs in flight can strand each other. Beyond, gangs
that fit start without that test."""

WAYS_WORK_MAX = 20_000
"""The work of making snapshots of one gang, one for each way to choose its topology domains."""
