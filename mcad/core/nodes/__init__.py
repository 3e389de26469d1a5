"""The books of the nodes.

columns         amounts of all nodes, a column per resource; slots by these
codes           one fact of all nodes (a label, the taints) as integers
constraints     which nodes each placement constraint admits
filters         whether a node admits a pod
closing         nodes that take no pods yet, or no more
obstacle        what keeps all nodes off, in words
ledger          what is used on each node, and which nodes gained room
pod_class       pods that are equal for kube-scheduler, and the bounds of their slots
shape           what a gang demands
reserved_free   what is free on reserved nodes
resources, host_ports   arithmetic on amounts; host ports as amounts
"""
