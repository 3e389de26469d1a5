"""Decisions only: no clock, no I/O, no threads. Events go in, commands come out."""
