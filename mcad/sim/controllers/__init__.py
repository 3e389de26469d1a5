"""The controllers of the embedded cluster: what kube-controller-manager, kubelets and others do."""
