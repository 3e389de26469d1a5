"""Observations and the changes of state that they cause. Decisions follow in the next cycle.

workloads       AppWrappers: first sight, edits, writes of others, deletion
objects         wrapped objects and pods, and whether their kinds can be watched
recovery        continues the attempts of the previous leader
"""
