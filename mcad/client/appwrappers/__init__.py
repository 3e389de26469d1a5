"""AppWrappers of the cluster: their state, their objects, and waiting for a goal."""
