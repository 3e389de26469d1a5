"""The embedded cluster of ``mcad demo`` and its tours."""
