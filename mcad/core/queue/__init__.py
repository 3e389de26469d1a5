"""The line: what waits, in which order, and what need not be tried again yet.

waiting         every waiting AppWrapper, in line or out of it; owns how it waits
queue           all AppWrappers in line
walk            where the walk along it stands
dispatch_pauses   which DispatchPause keeps an AppWrapper out of the line
equivalence     classes of AppWrappers that share a verdict
verdicts        the classes that need a verdict, and those with one that stands
line            the heads that a pass tries, in turn
ordering        whose turn it is
priority_ceiling   how high a priority may be
run_history     how long AppWrappers of equal shape ran
"""
