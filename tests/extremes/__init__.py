"""Manifests whose numbers are extreme, and what becomes of them and of the dispatchers.

drawn       the manifests, by seed
soak        many of them, with two replicas and each policy, on a real control plane
"""
