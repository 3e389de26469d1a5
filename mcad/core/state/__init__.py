"""Records, enumerations, times, and the state of one AppWrapper.

entry           the state of one AppWrapper
lifecycle, waiting_state   its phases, and how it waits, as tables
milestones      events of AppWrappers in a step, for figures
agenda, timers  the work of the next passes, and when; the purposes of timers
objects         the wrapped objects observed, their names, and pods without a proven owner
reservation, reservation_book   a reservation; all reservations
scale_up        the requests to an autoscaler
model, quota_records   AppWrappers, nodes, pods, objects; QuotaSubtrees
dispatch_pause  DispatchPauses
status_view, answer   the content of a status; the content of a failed answer
records         immutable records, implemented in C
settings, run_policy, bounds   settings of users, for all and for one AppWrapper; other limits
work_bounds     limits of the work of a verdict
waiting_reason, refusal   why an AppWrapper waits; the figures if it does not fit
not_checked     predicates of kube-scheduler that no fit test checks
stall           why pods of a running AppWrapper do not run
quotation       words of others, marked
injections      what admission adds to pods
reasons, spelling   every word and text that users meet; suggestions for misspelled names
condition_reasons   the meaning of conditions and their reasons
rights          rights that are missing
inventory       the items by which an attempt is judged
eviction_pace, survey   how many evictions in a minute; the candidates
units, quantity   times, and amounts of resources
violations      checks that stay on in production
internal_error, errors   an error of the dispatcher about one AppWrapper; the errors of a step
restored_phase  the phase of a recorded status
"""
