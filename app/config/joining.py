"""Settings of many servers that are served as one: what is shown of them, in which groups, and how their lists are
read."""

from typing import Annotated, Literal

from pydantic import Field

from app.config.fields import Block, Budget, Count, Filled, PublicName, Seconds, Tags, Text


class Change(Block):
    """What is said of a tool or a prompt in place of what its server says."""

    name: PublicName | None = None
    title: Filled | None = None
    description: Filled | None = None
    enabled: bool = True
    tags: Tags = ()


class Tools(Block):
    """What is shown of what servers offer. Without an `allow` for a kind of things, all of that kind."""

    allow: Annotated[tuple[Filled, ...], Field(strict=False)] = ()
    deny: Annotated[tuple[Filled, ...], Field(strict=False)] = ()
    change: dict[Text, Change] = Field(default={})

    @property
    def says_something(self) -> bool:
        return bool(self.allow or self.deny or self.change)


class Group(Block):
    """Servers that are one at `/groups/{name}`. Patterns and names of `tools` begin with that of a server."""

    servers: Annotated[tuple[Text, ...], Field(strict=False, min_length=1)] | None = None
    """Left out, all of them."""
    tools: Tools = Tools()
    naming: Literal["prefix", "onConflict", "none"] | None = None
    """Left out, as everywhere."""
    mode: Literal["list", "search"] = "list"
    tags: Tags = ()
    """Only what has one of these."""


class Catalog(Block):
    """How the lists of servers that are one are known before anybody has a child of theirs."""

    read: Literal["start", "use"] = "start"
    list_timeout: Seconds = 2
    """How long a list waits for servers of which nothing is known yet."""
    page_size: Count = 500
    retry: Seconds = 5
    max_retry: Seconds = 300
    fresh: Budget = 10
    pages: Count = 100
    read_timeout: Seconds = 30
    """How long a server that has started has for each of its lists."""
    found: Count = 8
    """How many tools are found in search mode, where a client does not say."""
