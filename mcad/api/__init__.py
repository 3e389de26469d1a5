"""Translates Kubernetes objects and the configuration into core records, and status back."""
