"""The version of this package, where every module may read it: it imports nothing."""

__version__ = "0.1.0"
