"""The books of the nodes.

ledger          what is used on each node, and which nodes changed last
pools           the nodes that one placement constraint admits, and their sums
pool_without    another pool without a few nodes
claimed         the nodes of several pools as one set
domain_sums     what is free in each topology domain
sorted_nodes, node_events   those nodes sorted; which of them gained room since the last look
pod_signature   pods that are equal for kube-scheduler
shape           what a gang demands
filters         whether a node admits a pod
reserved_free   what is free on reserved nodes
resources, host_ports   arithmetic on amounts; host ports as amounts
"""
