"""What the reader of a config should know though nothing is wrong: logged once logging is set up."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Note:
    event: str
    fields: Mapping[str, object] = field(default_factory=dict)
    is_warning: bool = False
