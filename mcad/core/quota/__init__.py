"""Quota: teams' shares of the cluster, in trees; idle shares are lent. Entrance: ``Forest``.

records   QuotaSubtrees as the border reads them, and which leaf an AppWrapper names in each tree
trees     how subtrees become a tree, and what is wrong with those that do not
absent    subtrees that are gone and count as before until they return, or their grace ends
forest    what is held where, and whether one more fits
whatif    whether it would fit if others left
words     a refusal by quota in sentences
waiting   what those in line demand of every leaf
report    the figures of a tree for people
status    what the status of a QuotaSubtree says
"""

from mcad.core.quota.forest import Forest
from mcad.core.quota.records import NOBODYS, Designation, Path, QuotaChild, QuotaSubtree

__all__ = ["NOBODYS", "Designation", "Forest", "Path", "QuotaChild", "QuotaSubtree"]
