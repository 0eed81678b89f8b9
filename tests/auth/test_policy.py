"""Who may do what: what rules allow, less what they deny, and what a further scope would open."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.auth.policy import ALLOWED, DENIED, Decision, Hints, Limits, Policy, Rights, Rule
from app.auth.principal import ANONYMOUS, Principal
from app.core.targets import Glob, Kind, Pattern, Target, spellings

READ = Rule(scopes=frozenset({"read"}), allow=("git/git_status", "time/*"), deny=("*/delete*",), read_only=True)
WRITE = Rule(
    scopes=frozenset({"write"}), subjects=("alice@example.com",), allow=("*",), per_minute=60, concurrent=4
)  # fmt: skip
READ_ONLY, GENTLE, HARSH = Hints(True, False), Hints(False, False), Hints(False, True)


def principal(*scopes: str, name: str = "laptop", **claims: object) -> Principal:
    return Principal(name, frozenset(scopes), claims=claims)


def rights(*scopes: str, name: str = "laptop", rules: tuple[Rule, ...] = (READ, WRITE), **claims: object) -> Rights:
    return Policy(rules).rights(principal(*scopes, name=name, **claims))


def tool(name: str, server: str = "git") -> Target:
    return Target(server, "tools", name)


# Rules.


def test_a_rule_allows_what_its_patterns_name_and_nothing_else() -> None:
    mine = rights("read")
    assert mine.decide(tool("git_status"), READ_ONLY) == ALLOWED
    assert mine.decide(tool("now", "time"), READ_ONLY) == ALLOWED
    assert mine.decide(tool("git_commit"), READ_ONLY) == DENIED


def test_who_meets_no_rule_may_do_nothing() -> None:
    assert rights("other").decide(tool("git_commit")) == DENIED
    assert rights(rules=()).decide(tool("git_commit")) == DENIED


def test_what_one_rule_denies_no_other_allows() -> None:
    both = rights("read", "write", name="alice@example.com")
    assert both.decide(tool("git_commit")) == ALLOWED
    assert both.decide(tool("delete_branch")) == DENIED
    assert rights("write", name="alice@example.com").decide(tool("delete_branch")) == ALLOWED


def test_a_rule_needs_all_of_its_scopes() -> None:
    rule = Rule(scopes=frozenset({"a", "b"}), allow=("*",))
    assert rights("a", rules=(rule,)).decide(tool("x")) == Decision(False, ("a", "b"))
    assert rights("a", "b", rules=(rule,)).decide(tool("x")) == ALLOWED


def test_the_scope_of_everything_meets_every_rule_and_its_denials() -> None:
    mine = Policy((READ, WRITE)).rights(ANONYMOUS)
    assert mine.decide(tool("git_status"), READ_ONLY) == ALLOWED
    assert mine.decide(tool("delete_branch", "time"), READ_ONLY) == DENIED


def test_a_further_scope_is_named_only_where_it_would_help() -> None:
    alice = rights("read", name="alice@example.com")
    assert alice.decide(tool("git_commit")) == Decision(False, ("read", "write"))
    assert alice.decide(tool("delete_branch")) == DENIED
    assert rights("read").decide(tool("git_commit")) == DENIED
    assert rights(name="alice@example.com").decide(tool("delete_branch")) == Decision(False, ("write",))


def test_all_scopes_are_named_with_which_it_would_be_allowed_and_none_that_the_policy_does_not_know() -> None:
    """Some clients ask for a token with just these, and would lose what they had."""
    rules = (Rule(scopes=frozenset({"a"}), allow=("git/look",)), Rule(scopes=frozenset({"b"}), allow=("git/edit",)))
    decision = rights("a", "openid", rules=rules).decide(tool("edit"))
    assert decision == Decision(False, ("a", "b"))
    after = rights(*decision.scopes, rules=rules)
    assert [after.decide(tool(name)) for name in ("look", "edit")] == [ALLOWED, ALLOWED]


def test_a_further_scope_whose_rule_denies_the_same_is_not_named() -> None:
    rule = Rule(scopes=frozenset({"s"}), allow=("*",), deny=("git/*",))
    assert rights(rules=(rule,)).decide(tool("x")) == DENIED


def test_a_tool_that_only_reads_is_one_that_says_so() -> None:
    mine = rights("read")
    for hints in (GENTLE, HARSH, None):
        assert mine.decide(tool("git_status"), hints) == DENIED
    assert rights("read", name="alice@example.com").decide(tool("git_status")) == Decision(False, ("read", "write"))


def test_a_rule_without_destruction_takes_what_says_that_it_destroys_nothing() -> None:
    mine = rights(rules=(Rule(allow=("git",), destructive=False),))
    verdicts = [mine.decide(tool("x"), hints) for hints in (READ_ONLY, GENTLE, HARSH, None)]
    assert verdicts == [ALLOWED, ALLOWED, DENIED, DENIED]


def test_hints_are_of_tools_alone() -> None:
    mine = rights("read")
    assert mine.decide(Target("time", "prompts", "now")) == ALLOWED
    assert mine.decide(Target("time", "resources", "time://now")) == ALLOWED


@pytest.mark.parametrize(
    ("claims", "verdict"),
    [({"groups": ["dev", "ops"]}, ALLOWED), ({"groups": "ops"}, ALLOWED), ({"groups": ["dev"]}, DENIED), ({}, DENIED),
     ({"groups": {"ops": 1}}, DENIED)],
)  # fmt: skip
def test_a_rule_looks_at_claims(claims: dict[str, object], verdict: Decision) -> None:
    assert rights(rules=(Rule(claims={"groups": "ops"}, allow=("*",)),), **claims).decide(tool("x")) == verdict


def test_who_has_a_subject_is_known_by_that_and_not_by_its_name() -> None:
    rules = (Rule(subjects=("*@example.com",), allow=("*",)),)
    assert rights(name="x", sub="bob@example.com", rules=rules).decide(tool("x")) == ALLOWED
    assert rights(name="bob@example.com", sub="mallory", rules=rules).decide(tool("x")) == DENIED


def test_the_least_of_all_limits_holds() -> None:
    rules = (Rule(per_minute=60, concurrent=4), Rule(per_minute=10), Rule(scopes=frozenset({"s"}), concurrent=1))
    assert rights(rules=rules).limits == Limits(10, 4)
    assert rights("s", rules=rules).limits == Limits(10, 1)


def test_those_who_are_alike_have_the_same_rights() -> None:
    policy = Policy((READ, WRITE))
    assert policy.rights(principal("read")) is policy.rights(principal("read", email="x"))
    assert policy.rights(principal("read")) is not policy.rights(principal("read", name="alice@example.com"))


# Servers.


@pytest.mark.parametrize(
    ("allow", "deny", "verdict"),
    [("git/x", "other", ALLOWED), ("git", "git/x", ALLOWED), ("git", "g*/*", DENIED), ("git/x", "git", DENIED),
     ("time", "other", DENIED)],
)  # fmt: skip
def test_a_server_is_there_for_who_may_use_something_of_it(allow: str, deny: str, verdict: Decision) -> None:
    assert rights(rules=(Rule(allow=(allow,), deny=(deny,)),)).enter("git") == verdict


def test_a_further_scope_may_open_a_server() -> None:
    assert rights(rules=(READ,)).enter("time") == Decision(False, ("read",))


@pytest.mark.parametrize(
    ("rule", "has_all"),
    [(Rule(allow=("git/*",)), True), (Rule(allow=("*",), read_only=True), False), (Rule(allow=("git/x*",)), False),
     (Rule(allow=("*",), deny=("git/x",)), False), (Rule(allow=("*",), deny=("time",)), True)],
)  # fmt: skip
def test_everything_of_a_server_is_everything(rule: Rule, has_all: bool) -> None:
    assert rights(rules=(rule,)).has_all("git") == has_all


# Patterns.


@pytest.mark.parametrize(
    ("pattern", "targets"),
    [
        ("git", {"git tools a", "git prompts a", "git resources a:b"}),
        ("git/*", {"git tools a", "git prompts a", "git resources a:b"}),
        ("*", {"git tools a", "git prompts a", "git resources a:b", "time tools a"}),
        ("git/a", {"git tools a"}),
        ("*/a", {"git tools a", "time tools a"}),
        ("git/prompts/*", {"git prompts a"}),
        ("git/resources/a:*", {"git resources a:b"}),
        ("git/p*", {"git tools prompts/a"}),
        ("GIT/A", set()),
    ],
)
def test_a_pattern_names_targets(pattern: str, targets: set[str]) -> None:
    known = ["git tools a", "git prompts a", "git resources a:b", "time tools a", "git tools prompts/a"]
    wide = {"git tools prompts/a"} if pattern in ("git", "git/*", "*") else set()
    assert {each for each in known if Pattern(pattern).matches(_target(each))} == targets | wide


def _target(text: str) -> Target:
    kinds: dict[str, Kind] = {"tools": "tools", "prompts": "prompts", "resources": "resources"}
    server, kind, name = text.split(" ")
    return Target(server, kinds[kind], name)


@pytest.mark.parametrize("pattern", ["", "/x", "git/"])
def test_a_pattern_that_names_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="must be like"):
        Pattern(pattern)


@pytest.mark.parametrize(
    "uri",
    ["file:///etc/passwd", "file:///srv/../etc/passwd", "file:///srv/%2e%2E/etc/passwd", "FILE:///etc/passwd",
     "file:///srv/a/..%2f../etc/passwd", "file:///srv/%252e%252e/etc/passwd", "file:///srv\\..\\etc",
     "file:/srv/../etc", "file:///srv//../etc", "file:///srv/%" + "25" * 9 + "2e", "file://localhost/etc",
     "file:///srv/../etc/key?/../../srv/y", "file:///srv/../etc/key#/../../srv/y", "file:///srv/%2e%2e/etc?/../../srv/y",
     "file:///srv/../etc%3f/../../srv/y", "file:///srv/.\t./etc", "file:///srv/..\n/etc", " file:///etc", "\x01file:///etc",
     "fi\nle:///etc", "file:///srv/%0a/../../etc", "file://other/etc"],
)  # fmt: skip
def test_no_spelling_of_a_resource_gets_round_a_pattern(uri: str) -> None:
    only_srv = rights(rules=(Rule(allow=("fs/resources/file:///srv/*",)),))
    not_etc = rights(rules=(Rule(allow=("fs",), deny=("fs/resources/file:///etc*",)),))
    assert only_srv.decide(Target("fs", "resources", uri)) == DENIED
    assert "2525" in uri or not_etc.decide(Target("fs", "resources", uri)) == DENIED


@pytest.mark.parametrize("uri", ["file:///srv/a%20b", "file:///srv/", "file:///srv/x/../y", "file:///srv/a?b=1"])
def test_what_is_inside_stays_allowed(uri: str) -> None:
    only_srv = rights(rules=(Rule(allow=("fs/resources/file:///srv/*",)),))
    assert only_srv.decide(Target("fs", "resources", uri)) == ALLOWED


@pytest.mark.parametrize("uri", ["memo://insights", "test://static/1", "urn:isbn:1", "http://h/a?q=1", "plain", "a:b/"])
def test_a_plain_uri_has_one_spelling(uri: str) -> None:
    assert spellings(uri) == (uri,)


# Against evaluators that are simple and slow.


def naive_glob(pattern: str, name: str) -> bool:
    @cache
    def match(p: int, n: int) -> bool:
        if p == len(pattern):
            return n == len(name)
        if pattern[p] == "*":
            return any(match(p + 1, rest) for rest in range(n, len(name) + 1))
        return n < len(name) and pattern[p] == name[n] and match(p + 1, n + 1)

    return match(0, 0)


def naive_matches(pattern: str, target: Target) -> bool:
    server, _, rest = pattern.partition("/")
    if not naive_glob(server, target.server):
        return False
    if rest in ("", "*"):
        return True
    for kind in ("prompts", "resources"):
        if rest.startswith(f"{kind}/"):
            return target.kind == kind and naive_glob(rest[len(kind) + 1 :] or "*", target.name)
    return target.kind == "tools" and naive_glob(rest, target.name)


def naive_allowed(rules: list[Rule], who: Principal, target: Target, hints: Hints) -> bool:
    mine = [
        rule for rule in rules
        if ("*" in who.scopes or all(scope in who.scopes for scope in rule.scopes))
        and (not rule.subjects or who.name in rule.subjects)
    ]  # fmt: skip
    if any(naive_matches(pattern, target) for rule in mine for pattern in rule.deny):
        return False
    for rule in mine:
        if not any(naive_matches(pattern, target) for pattern in rule.allow):
            continue
        if target.kind != "tools":
            return True
        if (not rule.read_only or hints.read_only) and (rule.destructive or not hints.destructive):
            return True
    return False


NAMES = st.text("ab*", max_size=5)
SCOPES = st.frozensets(st.sampled_from("xyz*"), max_size=2)
PATTERNS = st.one_of(
    st.builds("{}/{}".format, st.sampled_from(["s", "t", "*"]), NAMES.filter(bool)),
    st.builds("{}/{}/{}".format, st.sampled_from(["s", "*"]), st.sampled_from(["prompts", "resources"]), NAMES),
    st.sampled_from(["s", "t", "*"]),
)
MANY = st.lists(PATTERNS, max_size=2).map(tuple)
RULES = st.lists(
    st.builds(
        Rule, scopes=st.frozensets(st.sampled_from("xyz"), max_size=2),
        subjects=st.sampled_from([(), ("me",), ("you", "me"), ("you",)]),
        allow=MANY, deny=MANY, read_only=st.booleans(), destructive=st.booleans(),
    ),
    max_size=4,
)  # fmt: skip
TARGETS = st.builds(
    Target, st.sampled_from("st"), st.sampled_from(["tools", "prompts", "resources"]), st.text("ab", max_size=4)
)
HINTS = st.builds(Hints, st.booleans(), st.booleans())


@given(NAMES, st.text("ab", max_size=8))
def test_globs_match_as_the_naive_ones_do(pattern: str, name: str) -> None:
    assert Glob(pattern).matches(name) == naive_glob(pattern, name)


@given(RULES, SCOPES, st.lists(TARGETS, min_size=1, max_size=3), HINTS)
def test_decisions_are_those_of_the_naive_evaluator(
    rules: list[Rule], scopes: frozenset[str], targets: list[Target], hints: Hints
) -> None:
    policy, who = Policy(rules), Principal("me", scopes)
    for target in [*targets, *targets]:  # The second time from what was kept.
        decision = policy.rights(who).decide(target, hints)
        assert decision.is_allowed == naive_allowed(rules, who, target, hints)
        if decision.scopes:
            wider = Principal("me", scopes | set(decision.scopes))
            assert not decision.is_allowed
            assert naive_allowed(rules, wider, target, hints)
        elif not decision.is_allowed:
            for rule in rules:
                assert not naive_allowed(rules, Principal("me", scopes | rule.scopes), target, hints)
