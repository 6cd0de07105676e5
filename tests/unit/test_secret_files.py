# SPDX-License-Identifier: Apache-2.0
"""Settings in files: trimmed, never beside a variable of the same name, and without values in messages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway import settings
from gateway.settings import SettingsError

DIRECTORY = "LAKEGATE__SETTINGS_DIRECTORY"


@pytest.mark.parametrize("end", ["", "\n", "\r\n", " \n\n"])
def test_a_line_break_at_the_end_of_a_file_is_not_part_of_the_secret(tmp_path: Path, end: str) -> None:
    (tmp_path / "PG_ENCRYPTION_KEY").write_bytes(f"key{end}".encode())
    (tmp_path / "OPENFGA__API_KEY").write_bytes(f"with a space{end}".encode())
    (tmp_path / "LISTEN_PORT").write_bytes(f"9999{end}".encode())
    read = settings.load({DIRECTORY: str(tmp_path), "LAKEGATE__WORKERS": "3"})
    assert read.pg_encryption_key and read.pg_encryption_key.reveal() == "key"
    assert read.openfga.api_key and read.openfga.api_key.reveal() == "with a space"
    assert (read.listen_port, read.workers) == (9999, 3)


def test_a_mounted_secret_of_kubernetes_is_read_through_its_links(tmp_path: Path) -> None:
    """Kubernetes mounts `..data`, a link to a directory with the files, and a link for each file."""
    copy = tmp_path / "..2026_01_01"
    copy.mkdir()
    (copy / "OPA__TOKEN").write_text("token\n")
    os.symlink(copy.name, tmp_path / "..data")
    os.symlink("..data/OPA__TOKEN", tmp_path / "OPA__TOKEN")
    read = settings.load({DIRECTORY: str(tmp_path)})
    assert read.opa.token and read.opa.token.reveal() == "token"


def test_a_setting_with_a_variable_and_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "OPA__TOKEN").write_text("s3cret-a")
    with pytest.raises(SettingsError, match="LAKEGATE__OPA__TOKEN is a variable and the file .*; keep one") as refused:
        settings.load({DIRECTORY: str(tmp_path), "LAKEGATE__OPA__TOKEN": "s3cret-b"})
    assert "s3cret" not in str(refused.value)


def test_a_misspelt_file_is_refused_with_the_nearest_setting(tmp_path: Path) -> None:
    (tmp_path / "OPA__TOKN").write_text("x")
    with pytest.raises(SettingsError, match="LAKEGATE__OPA__TOKN is not a setting; did you mean LAKEGATE__OPA__TOKEN"):
        settings.load({DIRECTORY: str(tmp_path)})


def test_a_directory_or_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=f"{DIRECTORY}: .*absent cannot be listed: No such file"):
        settings.load({DIRECTORY: str(tmp_path / "absent")})
    (tmp_path / "OPA__TOKEN").write_bytes(b"s3cret\xff")
    with pytest.raises(SettingsError, match="LAKEGATE__OPA__TOKEN: the file .* it is not UTF-8") as refused:
        settings.load({DIRECTORY: str(tmp_path)})
    assert "s3cret" not in str(refused.value)


def test_no_directory_is_read_unless_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "OPA__TOKEN").write_text("x")
    assert settings.load({}).opa.token is None
    assert settings.load({DIRECTORY: ""}).opa.token is None
