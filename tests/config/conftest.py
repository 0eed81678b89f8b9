import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.config import Config, ConfigError, Overrides, load

TIME = {"command": "uvx", "args": ["mcp-server-time"]}

Loading = Callable[..., Config]
Complaint = Callable[..., str]


@pytest.fixture
def loading(tmp_path: Path) -> Loading:
    """Load a file of these servers and this `viaduct` block."""

    def loaded(
        servers: object = None,
        viaduct: object = None,
        *,
        environ: dict[str, str] | None = None,
        given: Overrides | None = None,
        **top: object,
    ) -> Config:
        tree: dict[str, Any] = {"mcpServers": {"time": TIME} if servers is None else servers, **top}
        if viaduct is not None:
            tree["viaduct"] = viaduct
        path = tmp_path / "viaduct.json"
        path.write_text(json.dumps(tree))
        return load(path, environ or {}, given)

    return loaded


@pytest.fixture
def complaint(loading: Loading, tmp_path: Path) -> Complaint:
    """The sentence with which loading is refused, after the name of the file."""

    def refused(*args: Any, **kwargs: Any) -> str:
        with pytest.raises(ConfigError) as wrong:
            loading(*args, **kwargs)
        text = str(wrong.value)
        assert "\n" not in text
        return text.removeprefix(f"{tmp_path / 'viaduct.json'}: ")

    return refused
