"""Read, search and render threat patterns. Nothing here depends on the protocol."""
