# SPDX-License-Identifier: Apache-2.0
"""The command `lakegate tag`: suggestions from a CSV file, and invalid options."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli.tags import tag


def test_sample_suggests_tags_and_prints_no_value(tmp_path: Path) -> None:
    lines = ["contact,number\x1b", *(f"ann{number}@example.org,{number}" for number in range(9))]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    done = CliRunner().invoke(tag, ["suggest", "--sample", str(tmp_path / "people.csv")])
    assert (done.exit_code, done.output) == (0, "contact\tpii.email\t100% of 9 values\n")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"a\n"])
def test_empty_or_unreadable_sample_shows_no_traceback(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    done = CliRunner().invoke(tag, ["suggest", "--sample", str(tmp_path / "a.csv")])
    assert done.exit_code == (1 if content.startswith(b"\xff") else 0)
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["suggest"],
        ["define", "pii"],
        ["define", "pii", "--on", "table", "--value", "a", "--free-text"],
        ["attach", "pii", "--warehouse", "0" * 32, "--column", "a", "--token", "t", "--gateway", "http://127.0.0.1:1"],
        ["detach", "pii", "--token", "t"],
    ],
)
def test_incomplete_options_are_refused(arguments: list[str]) -> None:
    assert CliRunner().invoke(tag, arguments).exit_code == 2
