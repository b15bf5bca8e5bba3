"""Write patterns in the formats of other tools. Each module has ``files(patterns)``; `tmkb export` calls it."""
