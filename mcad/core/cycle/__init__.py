"""One scheduling cycle, in its order.

cycle           the steps of a cycle
admit           the walk along the queue
head_of_line    what a blocking head of the line keeps from the AppWrappers behind it
paused          AppWrappers that a DispatchPause concerns
deleted_trees   since when quota trees are deleted, on record in AppWrappers
quota_reports   the statuses of QuotaSubtrees
"""
