"""Tools for pattern authors: proofs, quality gates, scaffolds, evaluation. Serving never imports this package."""
