"""What clients reach: it translates between HTTP and the gateway, and decides nothing."""
