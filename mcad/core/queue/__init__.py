"""The line: what waits, in which order, and what need not be asked again.

queue           all in line
bucket          those in it that share a verdict
beds            buckets that were refused, and what wakes them
fairness        whose turn it is
ceilings        how high a priority may be
"""
