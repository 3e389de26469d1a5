"""The line: which AppWrappers wait, in which order, and which need not be tried again yet.

waiting         every waiting AppWrapper, in line or out of it; owns how it waits
queue           all AppWrappers in line
walk            the position of the walk along the line
dispatch_pauses   which DispatchPause keeps an AppWrapper out of the line
equivalence     classes of AppWrappers that share a verdict
verdicts        the classes that need a verdict, and the classes whose verdict stands
line            the heads that a pass tries, in turn
ordering        whose turn it is
priority_ceiling   how high a priority may be
run_history     how long AppWrappers of equal shape ran
"""
