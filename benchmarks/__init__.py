"""Figures, as ratios in one run or as CPU time. Never part of the tests: machines are noisy."""
