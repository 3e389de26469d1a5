"""The border: Kubernetes objects and configuration in, core records out, and status back."""
