"""Decisions only: no clock, no I/O, no threads. Events go in, commands come out.

dispatcher, deciding    the one entrance, ``step(event, now)``, and one pass in its order
events, commands        everything that the core can be told, and everything that it can ask for
world, entry            all that it knows, and what it knows of one AppWrapper
capacity, quota         what the nodes have, and the shares of teams; each has a map of its own
admission               both as one: what is let in

observing, edits, children, attribution, unproven, recovery   what is seen of AppWrappers, objects
                                and pods, whose these are, and what a predecessor began
queue, bucket, beds, fairness, ceilings   the line, those in it that share a verdict, that need not
                                be asked, whose turn it is, and how high a priority may be
dispatching, gate, obstacles    the walk along the line, what its head keeps back, and what else
                                keeps an AppWrapper from going
lending                         what waits because it would borrow what is taken back
attempts, inventory, names, rights   objects are created, under names and with rights that are free
teardown, sweep, tombstones, leftovers   they are deleted: of an attempt, of none, of a deleted
                                AppWrapper; what pods of unknown AppWrappers hold
running, completion, requeuing, health, resets   what is to be done about those that run
needs, unscheduled              their pods that do not come, or find no node

claim, claims, protection, backfill, passing   room that is promised before it is free: what that
                                is, how it lives, what gets it, and what may go ahead of it
departures, drains, ends, history   what has to leave so that one fits, and when that will be
preemption, victims, evicting, eviction_pace   which AppWrappers are evicted for which one, how, and
                                how many in a minute
forecast, rehearsal             when a waiting AppWrapper starts
outlook                         which would be evicted if a dispatcher began now

status, standing, podcounts, quotastatus   what statuses say
rows, claimants, shares         what else people ask
onlooker                        what a process tells that decides nothing
reasons, verdicts, spelling     the words for it, the figures, and which name was meant
lifecycle, timers, pacing, settings, rules   phases; times and bounds, and those that people set
model, records, units, quantity, invariants   what all of it is made of
audit                           everything that is kept twice, compared
"""
