"""The version of the package, which is that of the program it comes with."""

__version__ = "0.1.0"
