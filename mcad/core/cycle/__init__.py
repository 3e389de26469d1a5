"""One scheduling cycle, in its order.

cycle           the steps of a cycle
admit           the walk along the queue
head_of_line    what a blocking head of the line keeps from those behind it
pre_enqueue     what keeps an AppWrapper out of the line, besides room
borrow_wait     deferred borrowing: waits because it would borrow what is being reclaimed
"""
