"""Decisions only: no clock, no I/O, no threads. Events go in, commands come out.

Each line imports from the lines below it and from none above (import-linter holds that).

answers         what would start a waiting AppWrapper now
outlook         which AppWrappers would be evicted if a dispatcher started now
dispatcher      the entrance: ``step(event, now)``
invariants      compares everything that is kept twice
views           what lists and questions show
cycle           one scheduling cycle, in its order
observed        observations of AppWrappers, objects and pods, and the restart
scale_up        nodes that an autoscaler is asked for
preemption      which AppWrappers are evicted, and for which AppWrapper
reservations    room that is kept for an AppWrapper before it is free
running         AppWrappers that run: finished, unhealthy, requeued
attempts        objects are created and deleted
eligibility     what keeps an AppWrapper from starting though there is room
internal_errors  AppWrappers that an error of the dispatcher keeps as they are
cluster         the whole state of the core
status          what the status of an AppWrapper says
admission       the books of nodes and quota, changed together
queue           which AppWrappers wait, in which order, and which need no new try yet
capacity        nodes, assumed pods and verdicts as one
snapshot        dry runs: where a gang would fit if other AppWrappers left
quota           the shares of teams
fit             whether a gang fits
assumed         pods of dispatched AppWrappers that are not bound yet
nodes           the resources and facts of the nodes
commands, events   requests of the core, and events outside
state           records, enumerations, times, and the state of one AppWrapper
"""
