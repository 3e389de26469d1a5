"""What statuses, lists and questions show. Nothing here decides.

status, v1beta2_conditions, pod_counts   what the status of an AppWrapper says
rows, blocking_reservations   what lists show; the reservations that an AppWrapper waits for
start_times, start_estimate   when a waiting AppWrapper starts
outlook         which AppWrappers would be evicted if a dispatcher started now
standby_view    what a process shows that does not decide
node_report     the books of the nodes for people
"""
