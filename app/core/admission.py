"""What the headers of a stateless request must mirror (2026-07-28, basic/transports: "Request Metadata").

Whoever stands between a client and us reads the headers, and we read the body: both must say the same.
"""

from collections.abc import Mapping

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

from app.protocol import headers as written
from app.protocol.faults import BadParams, HeaderMismatch, UnknownMethod, UnsupportedRevision
from app.protocol.jsonrpc import Request, payload
from app.protocol.methods import LOG_LEVELS
from app.protocol.revisions import REVISIONS, SERVED
from app.protocol.stateless import LOG_LEVEL_KEY, REMOVED, Admitted, Envelope, Meta, fields_of, read_meta

_TARGET = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""What `Mcp-Name` mirrors ("Standard Request Headers"; of tasks, SEP-2663: "Routing Headers")."""

_KEPT_BYTES = 256
_NULL = Raw(b"null")

_strings: Decoder[str] = Decoder(str)


def admit(request: Request, headers: Mapping[bytes, bytes]) -> Admitted:
    """Judge a stateless request by its headers, whose names are in lower case.

    What goes on is the request as it was judged: of a member that was written twice, the one that counted. The
    version is settled first, for what else must be mirrored is that revision's to say.

    Raises:
        HeaderMismatch: a header is absent, malformed or says something else than the body.
        UnsupportedRevision: header and body name a revision that is not served in this way.
        UnknownMethod: the revision removed the method.
        BadParams: the body lacks what every request carries, does not name its target, or the log level is none.
    """
    fields, method, target = fields_of(request), request.method, ""
    meta = read_meta(fields)
    carried = meta.carried
    _check_version(carried, headers)
    if written.plain(headers, written.METHOD) != method:
        raise HeaderMismatch("Mcp-Method must be there, and be the method of the body")
    if method in _TARGET:
        target = _target(_TARGET[method], fields, headers)
    if method in REMOVED:
        raise UnknownMethod(f"{method} is not a method of {carried.version}")
    if carried.log_level and carried.log_level not in LOG_LEVELS:
        raise BadParams(f'_meta["{LOG_LEVEL_KEY}"] must be one of {", ".join(LOG_LEVELS)}')
    return _admitted(request, fields, meta, target)


class Admission:
    """One head, by which many requests are judged that say the same of themselves."""

    __slots__ = ("_headers", "_member", "_meta", "_method", "_name", "_target")

    def __init__(self, headers: Mapping[bytes, bytes]) -> None:
        self._headers = headers
        self._method = self._member = self._target = ""
        self._meta: Meta | None = None
        self._name = Raw(b"")

    def admit(self, request: Request) -> Admitted:
        """As `admit`, which need not look again at what it admitted last.

        Raises:
            ClientFault: as `admit`.
        """
        if request.method == self._method:
            fields = fields_of(request)
            meta = read_meta(fields)
            if meta is self._meta and fields.get(self._member, _NULL) == self._name:
                return _admitted(request, fields, meta, self._target)
        judged = admit(request, self._headers)
        self._remember(judged)
        return judged

    def _remember(self, judged: Admitted) -> None:
        member = _TARGET.get(judged.method, "")
        name = bytes(judged.fields.get(member, b"null"))
        if len(name) <= _KEPT_BYTES:
            self._method, self._meta, self._target = judged.method, judged.meta, judged.target
            self._member, self._name = member, Raw(name)


def _admitted(request: Request, fields: dict[str, Raw], meta: Meta, target: str) -> Admitted:
    fields["_meta"] = meta.written
    return Admitted(request.id, request.method, payload(fields), fields=fields, meta=meta, target=target)


def _check_version(carried: Envelope, headers: Mapping[bytes, bytes]) -> None:
    if written.plain(headers, written.VERSION) != carried.version:
        raise HeaderMismatch("MCP-Protocol-Version must be there, and be the protocol version of _meta")
    revision = REVISIONS.get(carried.version)
    if revision is not None and revision.modern:
        return
    if revision is not None:
        message = f"{carried.version} begins with initialize, and its requests carry no version in _meta"
    else:
        message = f"no such revision; these are served: {', '.join(SERVED)}"
    raise UnsupportedRevision(message, carried.version, SERVED)


def _target(member: str, fields: Mapping[str, Raw], headers: Mapping[bytes, bytes]) -> str:
    said = written.decoded(headers, written.NAME)
    try:
        target = _strings.decode(fields.get(member, b"null"))
    except DecodeError as wrong:
        if said is not None:
            raise HeaderMismatch(f"Mcp-Name is there, and params.{member} is not a string") from wrong
        raise BadParams(f"params.{member} must be a string") from wrong
    if said != target:
        raise HeaderMismatch(f"Mcp-Name must be there, and be params.{member} of the body")
    return target
