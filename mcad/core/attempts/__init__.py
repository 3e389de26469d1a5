"""The objects of an attempt: created, observed, deleted.

attempts        creation in order, and what the server's answers mean
inventory, names, rights   what an attempt consists of; whose name is taken; what may be created
observing, edits   what is seen of AppWrappers
children, attribution, unproven   what is seen of objects and pods, and whose these are
recovery        what a predecessor began
teardown        an attempt is taken back
sweep           objects of no recorded attempt are deleted
tombstones, leftovers   what deleted AppWrappers leave, and AppWrappers that only objects tell of
"""
