"""Decisions only: no clock, no I/O, no threads. Events go in, commands come out.

dispatcher      the one entrance, ``step(event, now)``
events, commands   everything that the core can be told, and everything that it can ask for
world           all that it knows
admission       nodes and quota as one: what is let in
audit           everything that is kept twice, compared

cycle           one pass of deciding
queue           what waits, in which order
nodes, fit      what the nodes have; whether a gang fits
assumed         what is dispatched and not bound yet
snapshot        dry runs: what would fit if others left
quota           the shares of teams
reservations    room that is promised before it is free
preemption      which AppWrappers are evicted for which one
attempts        objects are created, observed and deleted
running         what is done about AppWrappers that run
views           what statuses say, and what people ask
state           records, words, times, and what is known of one AppWrapper
"""
