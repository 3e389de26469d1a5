"""What the status of an AppWrapper says.

status          all of it, derived from the state
v1beta2_conditions   the conditions of v1beta2
pod_counts      the pods, counted at intervals
"""
