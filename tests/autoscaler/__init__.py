"""An autoscaler in the place of cluster-autoscaler, with the troubles that real ones have.

It speaks through the API only, so it works on the embedded cluster, in virtual time, and on a real
control plane. What it answers is what cluster-autoscaler 1.36.1 answers (ADR 68); what clouds do to
it (no machines left, fewer than ordered, late, lost again) is drawn by a seed.

    groups    node groups, and what becomes of nodes that are ordered
    room      a copy of the nodes, on which pods are tried
    standin   the autoscaler: one look every two seconds
    kinds     the resources that it reads, and their CRDs

    growing     a world of the fault histories with an autoscaler in it
    dispatches  looks at every dispatch: are there nodes for all pods?
    waits       the pods that wait for a node for long, and why
    stories     random stories, and gangs that stay
    crashes     a short story with a crash at any write

``python -m tests.autoscaler`` plays the 500 stories and counts (``__main__``).
"""
