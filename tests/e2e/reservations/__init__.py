"""Reservations on a real control plane: a few slots on one node, or shares of a tree."""
