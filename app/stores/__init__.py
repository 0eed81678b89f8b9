"""What outlives the gateway: sessions, so that the next one can take them up again."""
