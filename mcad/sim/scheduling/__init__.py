"""Where a pod goes: the filters and scores of kube-scheduler's default profile."""
