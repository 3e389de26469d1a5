"""The transport: HTTP, Kubernetes verbs, watches and Events; it must know nothing of queues.

Nothing is imported here, so that ``mcad.kube.port`` costs a simulator neither aiohttp nor
the client library. Read ``port.py`` first, then ``client.py`` and ``reflector.py``.
"""
