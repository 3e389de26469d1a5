"""The books of nodes.

ledger          what is taken of each node, and which changed last
pools           the nodes that one placement constraint admits, and their sums
tails, news     those nodes sorted, and which of them gained room since the last look
podclass        pods that are equal for kube-scheduler
placement       whether a node admits a pod
resources, ports   arithmetic on amounts; host ports as amounts
"""
