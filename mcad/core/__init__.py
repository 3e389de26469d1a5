"""Decisions only: no clock, no I/O, no threads. Events go in, commands come out.

dispatcher      the entrance: ``step(event, now)``
events, commands   what the core can be told, and what it can ask for
cluster         everything that the core knows
admission       the books of nodes and quota, changed together
invariants      compares everything that is kept twice

cycle           one scheduling cycle, in its order
queue           what waits, in which order, and what need not be tried again yet
nodes, fit      what the nodes have; whether a gang fits
assumed         pods of dispatched AppWrappers that are not bound yet
snapshot        dry runs: what would fit if others left
quota           the shares of teams
reservations    room that is kept for an AppWrapper before it is free
preemption      which AppWrappers are evicted, and for which one
attempts        objects are created, observed and deleted
running         AppWrappers that run: finished, unhealthy, requeued
views           what statuses, lists and questions show
state           records, enumerations, times, and the state of one AppWrapper
"""
