# SPDX-License-Identifier: Apache-2.0
"""The documented commands that call OPA."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.policies.conftest import Run
from tests.support.docs_commands import blocks, commands

_CALLS = [
    pytest.param(words[1:], id=str(block))
    for block in blocks()
    for words in commands(block.script)
    if words[0] == "opa"
]


@pytest.mark.parametrize("words", _CALLS)
def test_opa_accepts_every_documented_option(opa: Run, words: list[str]) -> None:
    known = set(re.findall(r"--[a-z0-9-]+", opa(words[0], "--help").stdout))
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert options
    assert options <= known


def test_the_documented_shape_of_a_guardrail_is_valid_rego(opa: Run, tmp_path: Path) -> None:
    shapes = [block.text for block in blocks() if block.text.startswith("denials[index] contains")]
    assert len(shapes) == 3
    for at, shape in enumerate(shapes):
        # Three dots are a placeholder for the conditions of a guardrail.
        rules = re.sub("; …", "; index >= 0", shape).replace("{ … }", "{ some index, _ in input.questions }")
        module = tmp_path / f"{at}.rego"
        module.write_text(f"package gateway.guardrails.example\n\n{rules}")
        checked = opa("check", "--strict", module)
        assert checked.returncode == 0, checked.stderr
