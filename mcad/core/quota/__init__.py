"""Quota: teams' shares of the cluster, in trees; idle shares are lent. Entrance: ``Forest``.

forest          what is held where, and whether one more fits
records         QuotaSubtrees as the border reads them, and which leaf an AppWrapper names in a tree
trees           how subtrees become a tree, and what is wrong with those that do not
absent          subtrees that are gone and count as before until they return, or their grace ends
waiting         what those in line demand of every leaf
words           a refusal by quota in sentences
report, status  the figures of a tree for people, and what the status of a QuotaSubtree says
quotastatus     when that is written
shares          which AppWrappers hold what
"""
