"""Dispatched AppWrappers whose pods are not bound yet.

allotments      how many pods an attempt still has to bind, per pod set
reservations    on which nodes room is kept for them
arrears         reservations without a node, and the nodes that are set aside for them
roster          every pod, by node and by AppWrapper
ownpods         questions about the pods of an AppWrapper
needs           since when pods are missing
"""
