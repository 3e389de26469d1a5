"""Records, enumerations, times, and the state of one AppWrapper.

entry           the state of one AppWrapper
lifecycle, waiting_state   its phases, and how it waits, as tables
milestones      what has happened to AppWrappers in a step, for figures
agenda, timers  what the next passes look at, and when; what a timer is for
objects         the wrapped objects observed, their names, and pods without a proven owner
reservation, reservation_book   a reservation; all of them
model, quota_records   AppWrappers, nodes, pods, objects; QuotaSubtrees
dispatch_pause  DispatchPauses
status_view, answer   what a status says; what a failed request says
records         immutable records, implemented in C
settings, run_policy, bounds   what users set, for all and for one AppWrapper; other limits
work_bounds     limits of the work of a verdict
waiting_reason, refusal   why an AppWrapper waits; the figures if it does not fit
not_checked     what kube-scheduler looks at and no fit test does
stall           why pods of a running AppWrapper do not run
quotation       words of others, marked
injections      what admission adds to pods
reasons, spelling   every word and text that users meet; suggestions for misspelled names
condition_reasons   what conditions and their reasons mean
rights          rights that are missing
inventory       the items that an attempt is judged by
eviction_pace, survey   how many evictions in a minute; the candidates
units, quantity   times, and amounts of resources
violations      checks that stay on in production
internal_error, errors   an error of the dispatcher about one AppWrapper; those of the present step
restored_phase  the phase that a recorded status tells of
"""
