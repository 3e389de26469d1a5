"""What is observed, and what it changes. Decisions follow in the next cycle.

workloads       AppWrappers: first sight, edits, writes of others, deletion
objects         wrapped objects and pods, and whether their kinds can be watched
recovery        continues what the previous leader began
"""
