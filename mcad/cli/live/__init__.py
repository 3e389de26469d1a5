"""Output that goes on: rows that change, logs, events."""
