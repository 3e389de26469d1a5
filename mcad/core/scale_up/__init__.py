"""Nodes that an autoscaler is asked for (core R14).

observed        what the controller reports about requests
"""
