"""How we think: pure state machines, messages in, effects out. No clock, no I/O, no randomness."""
