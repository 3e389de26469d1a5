"""What is done about AppWrappers that run.

running         everything that is looked at
completion      when they are finished
health, resets  when they are broken, and what becomes of these
requeuing       v1beta1: too few pods run
needs, unscheduled   pods that do not come, or find no node
"""
