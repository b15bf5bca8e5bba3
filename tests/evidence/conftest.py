"""The product has tests of its own, which need its package on the path."""

collect_ignore = ["product"]
