"""Tools for people who write patterns: proofs, quality checks, scaffolds, evaluation. Serving never imports this."""
