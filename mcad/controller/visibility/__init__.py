"""The visibility API: the dispatcher's figures as an API group of the cluster (ADR 42).

An APIService lets kube-apiserver pass requests for ``visibility.workload.codeflare.dev`` on to the
process that leads, after it has authenticated and authorized the caller and written the audit log.
So tenants see positions and start time estimates of their own namespaces with the rights that they
have, and neither a port nor a token of the dispatcher is theirs to find.

``proxied`` knows the API server from an impostor, ``access`` asks what a caller may see,
``documents`` makes Kubernetes documents of figures, ``routes`` puts these together, ``listener``
serves them, and ``endpoint`` tells the cluster where.
"""
