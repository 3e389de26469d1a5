"""The running process: feeds observations to the core and executes its commands."""
