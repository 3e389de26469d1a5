"""What is told: in statuses, and to people who ask. Nothing here decides.

status, standing, podcounts   what the status of an AppWrapper says
rows, claimants   what lists show, and the claims that something waits for
forecast, rehearsal   when a waiting AppWrapper starts
outlook         which AppWrappers would be evicted if a dispatcher began now
onlooker        what a process tells that decides nothing
"""
