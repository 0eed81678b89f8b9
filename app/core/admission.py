"""What the headers of a stateless request must mirror (2026-07-28, basic/transports: "Request Metadata").

Whoever stands between a client and us reads the headers, and we read the body: both must say the same.
"""

from collections.abc import Mapping

from msgspec import DecodeError, Raw, Struct, field
from msgspec.json import Decoder

from app.protocol import headers as written
from app.protocol.faults import BadParams, HeaderMismatch, UnknownMethod, UnsupportedRevision
from app.protocol.jsonrpc import Request
from app.protocol.methods import LOG_LEVELS
from app.protocol.revisions import REVISIONS
from app.protocol.stateless import LOG_LEVEL_KEY, REMOVED, Envelope

SUPPORTED = tuple(reversed(REVISIONS))
"""Every revision that is served here, newest first."""


class _Called(Struct):
    target: str = field(name="name")


class _Located(Struct):
    target: str = field(name="uri")


class _Task(Struct):
    target: str = field(name="taskId")


_called, _located, _task = Decoder(_Called), Decoder(_Located), Decoder(_Task)
_TARGETS: Mapping[str, tuple[str, Decoder[_Called] | Decoder[_Located] | Decoder[_Task]]] = {
    "tools/call": ("name", _called),
    "prompts/get": ("name", _called),
    "resources/read": ("uri", _located),
    "tasks/get": ("taskId", _task),
    "tasks/update": ("taskId", _task),
    "tasks/cancel": ("taskId", _task),
}
"""What `Mcp-Name` mirrors ("Standard Request Headers"; of tasks: the extension's "Routing Headers")."""


def admit(request: Request, carried: Envelope, headers: Mapping[bytes, bytes]) -> None:
    """Judge a stateless request by its headers, whose names are in lower case.

    The version is settled first: what else must be mirrored is that revision's to say.

    Raises:
        HeaderMismatch: a header is absent, malformed or says something else than the body.
        UnsupportedRevision: both name a revision that is not served in this way.
        UnknownMethod: the revision removed the method.
        BadParams: the body does not name its target, or the log level is none.
    """
    _check_version(carried, headers)
    if written.plain(headers, written.METHOD) != request.method:
        raise HeaderMismatch("Mcp-Method must be there, and be the method of the body")
    if request.method in _TARGETS:
        _check_target(request, headers)
    if request.method in REMOVED:
        raise UnknownMethod(f"{request.method} is not a method of {carried.version}")
    if carried.log_level and carried.log_level not in LOG_LEVELS:
        raise BadParams(f'_meta["{LOG_LEVEL_KEY}"] must be one of {", ".join(LOG_LEVELS)}')


def _check_version(carried: Envelope, headers: Mapping[bytes, bytes]) -> None:
    if written.plain(headers, written.VERSION) != carried.version:
        raise HeaderMismatch("MCP-Protocol-Version must be there, and be the protocol version of _meta")
    revision = REVISIONS.get(carried.version)
    if revision is not None and revision.modern:
        return
    if revision is not None:
        message = f"{carried.version} begins with initialize, and its requests carry no version in _meta"
    else:
        message = f"no such revision; these are served: {', '.join(SUPPORTED)}"
    raise UnsupportedRevision(message, carried.version, SUPPORTED)


def _check_target(request: Request, headers: Mapping[bytes, bytes]) -> None:
    member, decoder = _TARGETS[request.method]
    said = written.decoded(headers, written.NAME)
    try:
        target = decoder.decode(request.params or Raw(b"{}")).target
    except DecodeError as wrong:
        if said is not None:
            raise HeaderMismatch(f"Mcp-Name is there, and params.{member} is not a string") from wrong
        raise BadParams(f"params.{member} must be a string") from wrong
    if said != target:
        raise HeaderMismatch(f"Mcp-Name must be there, and be params.{member} of the body")
