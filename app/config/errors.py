"""What is wrong with the configuration or with the place we run in."""


class ConfigError(Exception):
    """One sentence that says where, and what to change. It never holds a secret."""
