"""Options and names that commands share."""
