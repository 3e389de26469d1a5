"""Figures of queue, capacity and quota: asked from the dispatcher, or computed from objects."""
