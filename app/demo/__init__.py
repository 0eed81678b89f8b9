"""The bundled server, so that a newcomer sees the gateway work with nothing else installed."""
