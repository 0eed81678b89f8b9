"""Every fault has a code and a reason of its own, and says whether the request may have run."""

import pytest

from app.protocol import faults
from app.protocol.faults import (
    ClientFault,
    GatewayFault,
    GatewayLimit,
    MissingCapability,
    UnknownSession,
    UnsupportedRevision,
    UpstreamFault,
)

CODES: dict[type[GatewayFault], tuple[int, str, bool]] = {
    faults.Malformed: (-32700, "malformed", False),
    faults.InvalidRequest: (-32600, "invalid_request", False),
    faults.UnknownMethod: (-32601, "unknown_method", False),
    faults.BadParams: (-32602, "bad_params", False),
    faults.HeaderMismatch: (-32020, "header_mismatch", False),
    faults.Unavailable: (-31001, "unavailable", True),
    faults.Exited: (-31002, "exited", True),
    faults.TimedOut: (-31003, "timed_out", True),
    faults.SpokeNonsense: (-31004, "spoke_nonsense", True),
    faults.Overloaded: (-31005, "overloaded", True),
    faults.ShuttingDown: (-31006, "shutting_down", True),
    faults.Denied: (-31007, "denied", False),
    faults.EventsLost: (-31008, "events_lost", False),
    faults.Cancelled: (-31009, "cancelled", False),
}


def kinds(root: type[GatewayFault]) -> set[type[GatewayFault]]:
    return {root, *(kind for below in root.__subclasses__() for kind in kinds(below))}


@pytest.mark.parametrize("kind", CODES, ids=lambda kind: kind.__name__)
def test_a_fault_tells_its_code_its_reason_and_whether_to_try_again(kind: type[GatewayFault]) -> None:
    code, reason, retryable = CODES[kind]
    fault = kind("why")
    assert (fault.code, fault.message, str(fault)) == (code, "why", "why")
    assert fault.data() == {"source": "gateway", "reason": reason, "executed": "no", "retryable": retryable}


def test_no_fault_is_missing_here_and_none_shares_a_code() -> None:
    named = {*CODES, UnknownSession, MissingCapability, UnsupportedRevision, faults.InsufficientScope}
    assert kinds(GatewayFault) - {GatewayFault, ClientFault, UpstreamFault, GatewayLimit} == named
    assert len({kind.code for kind in named}) == len(named)


def test_our_own_codes_lie_outside_of_json_rpcs_reserved_range() -> None:
    own = [code for code, _, _ in CODES.values() if code > -32000]
    assert len(own) == 9
    assert all(code not in range(-32768, -31999) for code in own)


def test_what_is_known_more_closely_is_said_in_the_data() -> None:
    fault = faults.Unavailable("no", reason="refused", executed="unknown", details={"server": "time", "exitCode": 3})
    assert fault.data() == {
        "source": "gateway",
        "reason": "refused",
        "executed": "unknown",
        "retryable": True,
        "server": "time",
        "exitCode": 3,
    }


def test_scopes_that_are_missing_are_told_all_at_once() -> None:
    fault = faults.InsufficientScope("why", ["read", "write"])
    assert (fault.code, fault.reason, fault.retryable) == (-31010, "insufficient_scope", False)
    assert (fault.scopes, fault.data()["scopes"]) == (("read", "write"), ["read", "write"])


def test_details_are_the_faults_own() -> None:
    details: dict[str, object] = {"server": "time"}
    fault = faults.Exited("gone", details=details)
    details["server"] = "other"
    assert fault.details == {"server": "time"}


def test_an_unknown_session_says_what_would_work_and_nothing_else() -> None:
    fault = UnknownSession()
    assert (fault.code, fault.data()["reason"]) == (-32001, "unknown_session")
    assert "initialize" in fault.message


def test_a_missing_capability_is_told_in_the_shape_of_capabilities() -> None:
    fault = MissingCapability("the server asks for a sample", {"sampling": {}})
    assert fault.code == -32021
    assert fault.data() == {
        "source": "gateway",
        "reason": "missing_capability",
        "executed": "no",
        "retryable": False,
        "requiredCapabilities": {"sampling": {}},
    }


def test_an_unsupported_revision_is_told_with_those_that_are() -> None:
    fault = UnsupportedRevision("no such revision", "2099-01-01", ("2026-07-28", "2025-11-25"))
    assert fault.code == -32022
    assert fault.data() == {
        "source": "gateway",
        "reason": "unsupported_revision",
        "executed": "no",
        "retryable": False,
        "supported": ["2026-07-28", "2025-11-25"],
        "requested": "2099-01-01",
    }
