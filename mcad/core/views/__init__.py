"""What lists and questions show. Nothing here decides.

rows, blocking_reservations   AppWrappers as rows; the reservations that one waits for
quota_holders   which AppWrappers use what of a quota tree
start_times, start_estimate   when a waiting AppWrapper starts
standby_view    what a process shows that does not decide
"""
