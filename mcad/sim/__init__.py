"""A Kubernetes cluster in memory: an API server, a scheduler and the workload controllers."""
