"""What everything else is made of: records, words, times, and what is known of one AppWrapper.

entry           all that is known of one AppWrapper
lifecycle       its phases, as one table
timers          what waits for a time
model, claim    records of AppWrappers, nodes, pods and objects; a claim and an eviction
records         immutable records, made in C
settings, rules, pacing   what people set, for all and for one; all other times and bounds
verdicts        why something does not fit, with figures
reasons, spelling   every word and text that users meet; which name was meant
units, quantity   times, and amounts of resources
invariants      checks that stay on in production
"""
