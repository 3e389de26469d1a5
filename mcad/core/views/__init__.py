"""What lists and questions show. Nothing here decides.

rows            AppWrappers as rows
evictions       which AppWrappers were evicted since some time
holders         which AppWrappers hold quota, or room, for which others wait
start_times, start_estimate   when a waiting AppWrapper starts
"""
