"""One pass of deciding, in its order.

deciding        the steps of a pass
dispatching     the walk along the line
gate            what the head of the line keeps back
obstacles       what keeps an AppWrapper from going besides room
lending         what waits because it would borrow what is taken back
"""
