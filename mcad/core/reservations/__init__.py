"""Room that is promised before it is free.

claims          how a claim is made, kept and ended
protection      starvation: the first in line for too long gets one
backfill        which AppWrappers go ahead without delaying the first
passing         which may use claimed room
drains, ends    which AppWrappers have to end, and when that will be
history         how long AppWrappers of equal shape ran
"""
