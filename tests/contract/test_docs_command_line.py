# SPDX-License-Identifier: Apache-2.0
"""Run the commands of docs/command-line.md on the stack."""

from __future__ import annotations

import json
import re

import pytest

from gateway.cli.exit_codes import ExitCode
from tests.support.docs_commands import ROOT, blocks, commands
from tests.support.stack.command_line import run
from tests.support.stack.world import World, unique

_PAGE = "docs/command-line.md"
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
#: Commands that need a provider, a browser, an emergency, or that decide about a request twice.
_NOT_RUN = (
    ("login",),
    ("logout",),
    ("deny",),
    ("break-glass",),
    ("audit",),
    ("--profile",),
    ("pipeline",),
    ("whoami",),
)


def test_the_page_lists_the_exit_codes_of_the_code() -> None:
    table = re.findall(r"^\| (\d+) \| (.+) \|$", (ROOT / _PAGE).read_text(), re.MULTILINE)
    assert [(int(code), meaning) for code, meaning in table] == [(code.value, code.meaning) for code in ExitCode]


def test_the_commands_of_the_page_work_in_their_order(
    soft: World, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    path = f"/management/v1/warehouse/{soft.warehouse}"
    warehouse = soft.admin.get(path).json()["name"]
    soft.grant("describe", soft.bob, "warehouse", soft.warehouse)
    role, made, ran = unique("analysts"), "", 0
    for block in blocks():
        if block.page != _PAGE or not block.script:
            continue
        for _, *words in commands(block.script):
            if any(tuple(words[: len(each)]) == each for each in _NOT_RUN) or "eval" in block.script:
                continue
            words = [re.sub(r"\bdemo\b", warehouse, word).replace("analysts", role) for word in words]
            words = [re.sub(r"\bpii\b", f"pii-{role}", word) for word in words]
            words = [_ID.sub(made, word) if words[0] == "approve" else word for word in words]
            by = soft.bob if words[0] == "request" else soft.admin
            done = run(soft, *words, by=by)
            allowed = (ExitCode.DONE, ExitCode.DIFFERS) if words[0] == "can" else (ExitCode.DONE,)
            assert done.exit_code in allowed, (words, done.output)
            made, ran = done.stdout.strip() if words[0] == "request" else made, ran + 1
    assert ran > 25
    # The approved request gave the right.
    assert json.loads(run(soft, "grants", "list", "--json", by=soft.bob).stdout)
