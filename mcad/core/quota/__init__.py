"""Quota: shares of the cluster, in trees; idle shares are lent. Entrance: ``Forest``.

usage           the use of each share, and whether one more AppWrapper fits
tree            how QuotaSubtrees become a tree, and the faults of QuotaSubtrees that do not
absent          deleted QuotaSubtrees that count until they return or their grace ends
demand_in_line  the demand of the AppWrappers in line, by leaf
explain         a refusal by quota in sentences
report, status  the figures of a tree; the statuses of QuotaSubtrees, and when they are written
"""
