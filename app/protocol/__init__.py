"""What we speak: the envelope and its bytes, one row per revision, the names, and the tree of faults."""
