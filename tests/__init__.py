"""The tests; folders are named like the packages of `tmkb` that they test. CONTRIBUTING.md describes the tiers."""
