"""What keeps an AppWrapper from starting though there is room, and which AppWrapper goes first.

pre_enqueue     kinds that cannot be watched, missing rights, names that are taken
precedence      which AppWrappers may use reserved room
end_times       when running AppWrappers end, by declared or expected times
binding_wait    waits until the pods of recently dispatched gangs are bound
borrow_wait     deferred borrowing: waits because it would borrow what is being reclaimed
"""
