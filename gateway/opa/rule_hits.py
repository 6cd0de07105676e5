# SPDX-License-Identifier: Apache-2.0
"""Read from OPA's trace the rules of guardrails that applied to one question, and the parts of the input they read.

Pure. The trace is the text form of OPA's explanation: its JSON form has no positions in files. Each line has a
position, the depth as `| `, and an event such as `Exit data.gateway.guardrails.hours.denials`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_LINE: Final = re.compile(r"^(?P<file>\S+):(?P<row>\d+) +(?P<bars>(?:\| )*)(?P<event>[A-Z][a-z]+) (?P<text>.*)$")
_GUARDRAIL: Final = "data.gateway.guardrails."
_KINDS: Final = frozenset({"denials", "obligations"})
#: A reference to the input, such as `input.context.time` or `input.questions[0].facts.purge`.
_FACT: Final = re.compile(r"\.facts\.([A-Za-z_][A-Za-z0-9_]*)")
#: The prefix of facts of the operation among the parts of the input.
FACTS: Final = "questions.facts."
_INPUT: Final = re.compile(r"\binput((?:\.[A-Za-z_][A-Za-z0-9_]*|\[[^\]]*\])+)")


@dataclass(frozen=True, slots=True)
class RuleHit:
    """A rule that gave a denial or an obligation: its package and name, and its position in the policies."""

    package: str
    rule: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class PolicyTrace:
    """The result of reading a trace.

    - `hits`: the rules that applied, in the order of the evaluation.
    - `read`: the parts of `input` that guardrails read, such as `context.time`, sorted.
    """

    hits: tuple[RuleHit, ...]
    read: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Event:
    file: str
    row: int
    depth: int
    event: str
    text: str


def read_trace(lines: Iterable[str]) -> PolicyTrace:
    """Return the rules of guardrails that applied in a trace about one question."""
    hits: dict[RuleHit, None] = {}
    read: set[str] = set()
    inside: int | None = None
    for event in _events(lines):
        if inside is not None and event.depth <= inside:
            inside = None
        name = event.text.removesuffix(" early")
        if event.event == "Enter" and name.startswith(_GUARDRAIL) and inside is None:
            inside = event.depth
        if inside is None:
            continue
        read.update(_input_parts(event.text))
        package, _, rule = name.rpartition(".")
        if event.event == "Exit" and package.startswith(_GUARDRAIL) and rule in _KINDS:
            hits[RuleHit(package.removeprefix("data."), rule, event.file, event.row)] = None
    return PolicyTrace(tuple(hits), tuple(sorted(read)))


def _events(lines: Iterable[str]) -> Iterator[_Event]:
    for line in lines:
        if found := _LINE.match(line):
            depth = len(found["bars"]) // 2
            yield _Event(found["file"], int(found["row"]), depth, found["event"], found["text"])


def _input_parts(text: str) -> Iterator[str]:
    """Yield the parts of the input in an expression, without indexes: `questions[0].facts` is `questions.facts`.

    Parts in square brackets with a text, such as `["client_address"]`, count as fields. A fact of a question in a
    variable counts too: `question.facts.purge` is `questions.facts.purge`.
    """
    yield from (f"{FACTS}{name}" for name in _FACT.findall(text))
    for found in _INPUT.finditer(text):
        parts = re.findall(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[\"([^\"\]]*)\"\]", found[1])
        name = ".".join(first or second for first, second in parts)
        if name:
            yield name
