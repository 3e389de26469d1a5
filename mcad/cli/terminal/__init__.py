"""``mcad top`` on the whole terminal, with textual, which is imported by nothing else.

app            the screen: queue and capacity; keys; leaving
follower       figures that follow the cluster, in a thread, so that keys are never late
row_table      the table: draws the rows that are visible, and of those what changed
columns        cells, and which columns fit
chosen_rows    which rows are shown, in which order
capacity_bars  used, reserved and free as bars
head           title, and the state of the dispatcher
pages          what covers the screen: one AppWrapper, the help
"""
