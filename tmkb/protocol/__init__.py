"""The protocol: bytes of one message in, effects out. No I/O, clock, thread or randomness."""
