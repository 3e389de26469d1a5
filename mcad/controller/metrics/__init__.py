"""The Prometheus metrics. Each is declared once; gauges are computed for a page, the
rest is counted when it happens.

declared        every metric with its kind, labels and help, as in docs/reference/metrics.md
leader          those of the process that leads: counters, and its page
turnover        what becomes of AppWrappers, counted by their milestones
appwrappers     gauges of AppWrappers: by state, pending by reason, the oldest, reservations
quota           gauges of quota trees
cluster         gauges of nodes, streams and write lanes
replica         those that a standby has too: its requests, the Lease, the process
labels          values of labels: bounded, and remembered so that a gauge does not vanish
"""
