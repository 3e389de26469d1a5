"""AppWrappers that run.

monitor         everything that is checked while an AppWrapper runs
completion      when an AppWrapper is finished
health, reset   when it is unhealthy, and what follows
requeue         v1beta1: too few pods run, or the time limit is over
unscheduled     pods that find no node: what is reported of them
"""
