"""Questions about a cluster that are answered on a copy of the dispatcher: why an AppWrapper waits,
what would start it now, and what would happen if something differed.

why             all answers about one AppWrapper
priority, extra_nodes, ends, ahead, smaller, more_quota   one kind of change each: the smallest one
holding         which AppWrappers hold the resource for which an AppWrapper waits
certificate     why an AppWrapper does not fit, as figures to check by hand
remedies        the records of answers
node_drain      which pods a drain of nodes moves, and where they fit
outcome         what the next cycles do with such facts
behind          which AppWrappers may be left out of the facts
changed_facts   the facts with a change
search          the smallest number that suffices, by trying
changes         a change of the facts, made on a dispatcher and taken back
dry_run         a dispatcher of its own that is fed with the facts, and runs its cycle
"""
