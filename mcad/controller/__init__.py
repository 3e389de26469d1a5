"""The running process: feeds the core with what is observed and executes what it commands."""
