"""Records, enumerations, times, and the state of one AppWrapper.

entry           the state of one AppWrapper
lifecycle       its phases, as one table
timers          what waits for a time
model, reservation   records of AppWrappers, nodes, pods and objects; of reservations and evictions
records         immutable records, implemented in C
settings, run_policy, bounds   what users set, for all and for one AppWrapper; other limits
refusal         why something does not fit, with figures
reasons, spelling   every word and text that users meet; suggestions for misspelled names
units, quantity   times, and amounts of resources
violations      checks that stay on in production
"""
