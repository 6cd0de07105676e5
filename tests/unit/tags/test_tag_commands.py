# SPDX-License-Identifier: Apache-2.0
"""The command `lakegate tag`: suggestions from samples, and invalid options."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from gateway.cli.tags import tag


def test_sample_suggests_tags_and_prints_no_value(tmp_path: Path) -> None:
    lines = ["contact,number\x1b", *(f"ann{number}@example.org,{number}" for number in range(9))]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    done = CliRunner().invoke(tag, ["suggest", "--sample", str(tmp_path / "people.csv")])
    assert (done.exit_code, done.output) == (0, "contact\tpii.email\t100% of 9 values\n")


def test_parquet_sample_gives_the_suggestions_of_its_texts_and_numbers(tmp_path: Path) -> None:
    mails = [None, *(f"ann{number}@example.org" for number in range(9))]
    cards = [4111111111111111, *[5500005555555559] * 9]
    people = pa.table(
        {
            "contact": mails,
            "coded": pa.array(mails).dictionary_encode(),
            "card": cards,
            "nested": [{"contact": mail} for mail in mails],
            "at": [datetime(2026, 1, 1)] * 10,
        }
    )
    pq.write_table(people, tmp_path / "people")
    done = CliRunner().invoke(tag, ["suggest", "--sample", str(tmp_path / "people")])
    expected = "contact\tpii.email\t100% of 9 values\ncoded\tpii.email\t100% of 9 values\n"
    assert (done.exit_code, done.output) == (0, f"{expected}card\tpii.payment-card\t100% of 10 values\n")


def test_damaged_parquet_sample_shows_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing else")
    done = CliRunner().invoke(tag, ["suggest", "--sample", str(tmp_path / "a.parquet")])
    assert (done.exit_code, "cannot be read as a Parquet file" in done.output) == (1, True)


def test_parquet_without_the_extra_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    done = CliRunner().invoke(tag, ["suggest", "--sample", str(tmp_path / "a.parquet")])
    assert (done.exit_code, "lakegate[reader]" in done.output) == (1, True)


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
        ["suggest", "--sample-table", "a.b"],
        ["suggest", "--sample", "a.csv", "--sample-table", "a.b", "--in", "w"],
        ["define", "pii"],
        ["define", "pii", "--on", "table", "--value", "a", "--free-text"],
        ["attach", "pii", "--warehouse", "0" * 32, "--column", "a", "--token", "t", "--gateway", "http://127.0.0.1:1"],
        ["detach", "pii", "--token", "t"],
    ],
)
def test_incomplete_options_are_refused(arguments: list[str]) -> None:
    assert CliRunner().invoke(tag, arguments).exit_code == 2
