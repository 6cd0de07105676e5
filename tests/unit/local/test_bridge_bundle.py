# SPDX-License-Identifier: Apache-2.0
"""The bundle file with the policies of the bridge for Trino."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli import main
from lakegate.local.engines import bridge_bundle
from lakegate.local.errors import StackError

POLICIES = Path(__file__).parents[3] / "policies"


def test_the_bundle_contains_the_bridge_without_tests_and_claims_one_root() -> None:
    packed, revision = bridge_bundle(POLICIES)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        names = archive.getnames()
        manifest = json.load(archive.extractfile(".manifest"))  # type: ignore[arg-type]  # the file is there
    assert {"trino/main.rego", "trino/authz.rego", "trino/log.rego"} <= set(names)
    assert not [name for name in names if "_test" in name]
    assert manifest == {"revision": revision, "roots": ["trino"], "rego_version": 1}


def test_equal_policies_give_equal_bytes_and_changed_ones_a_new_revision(tmp_path: Path) -> None:
    copy = shutil.copytree(POLICIES, tmp_path / "policies")
    assert bridge_bundle(copy) == bridge_bundle(POLICIES)
    with (copy / "trino" / "log.rego").open("a") as rules:
        rules.write("# changed\n")
    assert bridge_bundle(copy)[1] != bridge_bundle(POLICIES)[1]


def test_a_folder_without_bridge_policies_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="no policies for Trino"):
        bridge_bundle(tmp_path)


def test_the_bundle_command_writes_the_file_and_prints_its_revision(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["policy", "bundle", "-o", str(tmp_path / "b.tar.gz")])
    packed, revision = bridge_bundle(POLICIES)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "b.tar.gz").read_bytes() == packed
    assert done.output == f"{tmp_path / 'b.tar.gz'}: revision {revision}\n"
    failed = CliRunner().invoke(main, ["policy", "bundle", "-o", str(tmp_path / "no" / "b.tar.gz")])
    assert failed.exit_code == 1
    assert "No such file" in failed.output
