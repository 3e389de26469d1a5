"""What is printed: pure functions from figures to lines."""
