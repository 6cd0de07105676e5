# SPDX-License-Identifier: Apache-2.0
"""`docs/guide.md` unchanged: a shell runs its blocks in order, and the responses must equal the documented ones."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakegate.local.ready import Ready
from tests.integration.conftest import _up

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"
ANY = "…"
_BLOCK = re.compile(r'^```(\w+)(?: title="(\d+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_MARK = "======== the next block ========"


@dataclass(frozen=True)
class Step:
    """A shell block, and the documented status and body; none for a block without a request."""

    line: int
    shell: str
    status: str = ""
    body: str = ""


def steps() -> list[Step]:
    text = GUIDE.read_text()
    found: list[Step] = []
    for block in _BLOCK.finditer(text):
        kind, status, content = block.groups()
        line = text[: block.start()].count("\n") + 1
        if kind == "sh":
            found.append(Step(line, content))
        else:
            assert kind == "json" and status, (
                f'line {line}: expected a block of kind sh (request) or json title="STATUS" (response)'
            )
            assert not found[-1].status, f"line {line}: a response without a request"
            found[-1] = Step(found[-1].line, found[-1].shell, status, content)
    return found


def differences(expected: Any, got: Any, at: str = "") -> Iterator[str]:
    """Return the differences between a response and its documented form."""
    if expected == ANY:
        return
    if isinstance(expected, dict) and isinstance(got, dict):
        names = set(expected) - {ANY}
        if names - set(got) or (ANY not in expected and set(got) - names):
            yield f"{at or 'the body'} has {sorted(got)}, not {sorted(expected)}"
        for name in names & set(got):
            yield from differences(expected[name], got[name], f"{at}.{name}")
    elif isinstance(expected, list) and isinstance(got, list):
        known = expected[:-1] if expected and expected[-1] == ANY else expected
        if len(got) < len(known) or (known is expected and len(got) != len(known)):
            yield f"{at} has {len(got)} items: {got!r}"
        for index, (one, other) in enumerate(zip(known, got, strict=False)):
            yield from differences(one, other, f"{at}[{index}]")
    elif type(expected) is not type(got) or expected != got:
        yield f"{at} is {got!r}, not {expected!r}"


@pytest.fixture(scope="module")
def empty() -> Iterator[Ready]:
    """Yield an unused server."""
    with _up(empty=True) as ready:
        yield ready


@pytest.mark.servers
def test_every_request_of_the_guide_gets_its_documented_response(empty: Ready) -> None:
    expected = steps()
    assert len(expected) > 20
    environment = {
        **{"PATH": os.environ["PATH"], "GATEWAY": empty.catalog_uri.removesuffix("/catalog"), "LC_ALL": "C.UTF-8"},
        **{"ADMIN": empty.users["admin"].token, "ALICE": empty.users["alice"].token},
        **{"STORE": empty.s3.endpoint, "REGION": empty.s3.region, "BUCKET": empty.s3.bucket},
        **{"ACCESS_KEY": empty.s3.access_key, "SECRET_KEY": empty.s3.secret_key},
        "STS_ROLE": str(empty.s3.profile["sts-role-arn"]),
    }
    script = f"\necho '{_MARK}'\n".join(step.shell for step in expected)
    ran = subprocess.run(
        ["bash", "-u", "-c", script], env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    answers = ran.stdout.split(f"{_MARK}\n")
    for step, answer in zip(expected, answers, strict=False):
        if not step.status:
            assert answer == "", step
            continue
        body, _, status = answer.rstrip("\n").rpartition("\n")
        where = f"docs/guide.md, line {step.line}: {answer} {ran.stderr}"
        assert status == step.status, where
        assert bool(body.strip()) == bool(step.body.strip()), where
        if body.strip():
            assert list(differences(json.loads(step.body), json.loads(body))) == [], where
    assert len(answers) == len(expected), ran.stderr
    assert ran.stderr == ""


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [
        ({"a": ANY}, {"a": [1]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1, ANY: ANY}, {"a": 1, "b": 2}, True),
        ({"a": 1, ANY: ANY}, {"b": 2}, False),
        ([1, ANY], [1, 2, 3], True),
        ([1, ANY], [2, 3], False),
        ([1], [1, 2], False),
        (True, 1, False),
        ({"a": {"b": "x"}}, {"a": {"b": "y"}}, False),
    ],
)
def test_response_difference_is_detected(expected: Any, got: Any, same: bool) -> None:
    assert (list(differences(expected, got)) == []) is same
