"""Room that is kept for an AppWrapper before it is free.

manage          makes, keeps and ends reservations
starvation      starvation prevention: the head of the line gets a reservation after a time
backfill        which AppWrappers may start without delaying the head of the line
release_set     which AppWrappers have to end for a reservation
"""
