"""AppWrappers that run.

monitor         everything that is checked while an AppWrapper runs
stalls          what keeps its pods from running: how it is reported
completion      when an AppWrapper is finished
requeue         v1beta1: too few pods run, or the time limit is over
items           items that are missing or failed
health          v1beta2: its pods failed, or too few are ready
stage           pods that are waited for: the one clock
reset           the reset or failure of an unhealthy AppWrapper
"""
