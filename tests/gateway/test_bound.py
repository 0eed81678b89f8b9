"""What a client may put into its child: values of the variables that the operator named, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.auth.principal import Principal
from app.gateway.credentials import Reference, bound
from app.gateway.settings import UpstreamSettings
from app.protocol.faults import Denied
from app.upstreams.command import Command, SecretFile

COMMAND = Command(("server", "--flag"), {"FIXED": "1"}, "/srv")
TEMPLATES: dict[str, tuple[str | SecretFile | Reference, ...]] = {
    "KEY": ("key=", Reference("header", "x-key", "none")),
    "WHO": (Reference("claim", "sub", "nobody"),),
}


@given(
    st.dictionaries(st.sampled_from(["x-key", "path", "ld_preload", "fixed", "x-other"]), st.text()),
    st.dictionaries(st.sampled_from(["sub", "PATH", "FIXED"]), st.text(st.characters(exclude_characters="\0"))),
)
def test_whatever_a_client_says_changes_only_what_the_operator_named(
    said: dict[str, str], claims: dict[str, str]
) -> None:
    upstream = UpstreamSettings("git", COMMAND, templates=TEMPLATES)
    command = bound(upstream, said, Principal("ada", frozenset(), None, "https://idp", claims=claims)).command
    assert (command.argv, command.env, command.cwd) == (COMMAND.argv, COMMAND.env, COMMAND.cwd)
    assert command.late == {
        "KEY": ("key=", said.get("x-key", "none")),
        "WHO": (claims.get("sub", "nobody" if claims else "ada"),),
    }


@pytest.mark.parametrize("value", ["\0", "a\ud800", "\udcff"])
def test_a_claim_that_no_environment_can_carry_is_as_good_as_none(value: str) -> None:
    upstream = UpstreamSettings("git", COMMAND, templates={"WHO": (Reference("claim", "tenant"),)})
    with pytest.raises(Denied) as refused:
        bound(upstream, {}, Principal("ada", frozenset(), None, "https://idp", claims={"tenant": value}))
    assert refused.value.reason == "claim_missing"


def test_where_nothing_is_named_nothing_a_client_says_is_looked_at() -> None:
    upstream = UpstreamSettings("git", COMMAND)
    assert bound(upstream, {"x-key": "a"}, Principal("ada", frozenset())) is upstream
