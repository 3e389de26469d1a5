"""Why an AppWrapper waits, what would start it, and what a change would do."""
