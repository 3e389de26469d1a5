"""What the status of an AppWrapper says.

status          all of it, derived from the state, and the conditions of v1beta2
pod_counts      the pods, counted at intervals
"""
