"""The visibility API: the figures of the dispatcher as an API group of the cluster (ADR 42).

An APIService lets kube-apiserver forward requests for ``visibility.workload.codeflare.dev`` to the
leader, after authentication, authorization and audit. So tenants see positions and start time
estimates of their own namespaces with the rights they have, without a port or token of the
dispatcher.

``front_proxy`` authenticates the API server, ``mcad.controller.access`` asks for the rights of a
caller, ``documents`` formats figures as Kubernetes objects, ``routes`` serves the paths,
``listener`` opens the port, and ``endpoint`` publishes its address.
"""
