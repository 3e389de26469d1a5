"""Quota: shares of the cluster, in trees; idle shares are lent. Entrance: ``Forest``.

usage           what is used where, and whether one more fits
tree            how QuotaSubtrees become a tree, and what is wrong with those that do not
absent          deleted QuotaSubtrees that count until they return or their grace ends
demand_in_line  what the AppWrappers in line demand of every leaf
explain         a refusal by quota in sentences
report, status  the figures of a tree; what QuotaSubtrees' statuses say, and when that is written
"""
