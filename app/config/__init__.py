"""The configuration: a file as other MCP clients have it, with one block of ours, or a single command."""

from app.config.errors import ConfigError
from app.config.loading import Config, load, named_by, open_logs, single, tell
from app.config.overrides import Overrides

__all__ = ["Config", "ConfigError", "Overrides", "load", "named_by", "open_logs", "single", "tell"]
