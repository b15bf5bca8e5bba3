"""TMKB: authorization threat patterns for coding agents, served over the Model Context Protocol."""

__version__ = "0.1.0"
