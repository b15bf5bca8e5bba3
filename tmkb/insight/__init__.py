"""What operators and authors learn from a running server: metrics, traces, and a log of queries with its report."""
