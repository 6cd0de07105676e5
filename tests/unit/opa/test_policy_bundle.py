# SPDX-License-Identifier: Apache-2.0
"""Bundles of policies: content, roots, reproducibility, keys, and the additions of a policy repository."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.opa.bundle import BundleName, InvalidSigningKey, SigningAlgorithm, SigningKey, policy_bundle
from gateway.opa.policy_files import policy_files
from gateway.opa.syntax import InvalidPolicies
from tests.support.servers.opa_bundles import key_pair
from tests.support.servers.opa_program import source

POLICIES = Path(__file__).parents[3] / "policies"
GUARDRAIL = (
    'package gateway.guardrails.mine\n\ndenials[index] contains {"code": "c", "message": "m"} if {\n\tfalse\n}\n'
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a policy repository with one guardrail and one file of policy data."""
    for name, content in {
        "gateway/guardrails/mine.rego": GUARDRAIL,
        "policy_data/mine/data.json": '{\n  "b": 1.50,\n  "a": [true]\n}\n',
    }.items():
        file = tmp_path / "repository" / "policies" / name
        file.parent.mkdir(parents=True)
        file.write_text(content)
    return tmp_path / "repository"


def contents(packed: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]  # files only


def test_gateway_bundle_contains_rules_and_data_and_owns_both(repository: Path) -> None:
    built = policy_bundle(policy_files(source(repository)), BundleName.GATEWAY)
    files = contents(built.content)
    manifest = json.loads(files[".manifest"])
    assert manifest["revision"] == built.revision
    assert manifest["roots"] == ["gateway", "policy_data", "system/authz", "system/revision"]
    assert {"gateway/main.rego", "gateway/guardrails/mine.rego", "policy_data/contractors/data.json"} <= files.keys()
    assert json.loads(files["policy_data/mine/data.json"]) == {"a": [True], "b": 1.5}
    assert not [name for name in files if "_test" in name or name.startswith(("trino/", "schemas/"))]


def test_an_approval_rule_of_the_repository_adds_its_root(repository: Path) -> None:
    (repository / "policies" / "changes.rego").write_text("package lakegate.changes\n\nok := true\n")
    manifest = json.loads(
        contents(policy_bundle(policy_files(source(repository)), BundleName.GATEWAY).content)[".manifest"]
    )
    assert "lakegate" in manifest["roots"]


@pytest.mark.parametrize("algorithm", [None, SigningAlgorithm.RS256, SigningAlgorithm.HS256])
def test_equal_policies_and_key_give_equal_bytes(repository: Path, algorithm: SigningAlgorithm | None) -> None:
    key = SigningKey(algorithm, key_pair(algorithm)[0]) if algorithm else None
    first = policy_bundle(policy_files(source(repository)), BundleName.GATEWAY, key)
    assert policy_bundle(policy_files(source(repository)), BundleName.GATEWAY, key) == first


def test_data_changes_the_revision_and_a_key_only_the_entity_tag(repository: Path) -> None:
    plain = policy_bundle(policy_files(source(repository)), BundleName.GATEWAY)
    key = SigningKey(SigningAlgorithm.ES256, key_pair("ES256")[0])
    signed, again = (policy_bundle(policy_files(source(repository)), BundleName.GATEWAY, key) for _ in range(2))
    assert signed.revision == plain.revision
    assert signed.entity_tag == again.entity_tag != plain.entity_tag
    (repository / "policies" / "policy_data" / "mine" / "data.json").write_text("{}")
    assert policy_bundle(policy_files(source(repository)), BundleName.GATEWAY).revision != plain.revision


def test_the_signature_lists_every_file_of_the_bundle(repository: Path) -> None:
    from joserfc import jws
    from joserfc.jwk import RSAKey

    private, public = key_pair("RS256")
    key = SigningKey(SigningAlgorithm.RS256, private)
    files = contents(policy_bundle(policy_files(source(repository)), BundleName.GATEWAY, key).content)
    [token] = json.loads(files.pop(".signatures.json"))["signatures"]
    signed = json.loads(jws.deserialize_compact(token, RSAKey.import_key(public), algorithms=["RS256"]).payload)
    assert {each["name"] for each in signed["files"]} == files.keys()


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [
        (SigningAlgorithm.RS256, key_pair("RS256")[1]),
        (SigningAlgorithm.RS256, key_pair("ES256")[0]),
        (SigningAlgorithm.ES256, key_pair("RS256")[0]),
        (SigningAlgorithm.HS256, "short"),
        (SigningAlgorithm.HS256, key_pair("RS256")[0]),
        (SigningAlgorithm.RS256, ""),
    ],
)
def test_a_key_that_is_not_one_of_the_algorithm_is_refused_without_printing_it(
    algorithm: SigningAlgorithm, key: str
) -> None:
    with pytest.raises(InvalidSigningKey, match=f"not a key for {algorithm}") as refused:
        SigningKey(algorithm, key)
    assert not key or key not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gateway/main2.rego", "package gateway\n", "cannot add the package gateway."),
        ("system/authz2.rego", "package system.authz\n", "cannot add the package system.authz."),
        ("trino/more.rego", "package trino\n", "cannot add the package trino."),
        ("gateway/guardrails/contractors.rego", GUARDRAIL, "the package contains a file of this name"),
        ("more.rego", "package gateway.guardrails.contractors\n", "is part of Lakegate"),
        ("more.rego", "# nothing\n", "more.rego:1: the file does not begin with a line `package"),
        ("more.rego", " package system.authz\nx := `\npackage gateway.guardrails.x\n`\n", "the package system.authz."),
        ("more.rego", 'package gateway.guardrails.x["y"]\n', "does not begin with a line `package"),
        ("more.rego", "# a comment\npackage other\n", "more.rego:2: "),
        ("contractors.json", "{}", "policy_data/<name>/data.json"),
        ("policy_data/contractors/data.yaml", "users: []", "policy_data/<name>/data.json"),
        ("policy_data/data.json", "{}", "policy_data/<name>/data.json"),
        ("gateway/data.json", "{}", "policy_data/<name>/data.json"),
        ("schemas/input.json", "{}", "schemas belong to the package"),
    ],
)
def test_a_file_that_replaces_a_rule_or_that_opa_ignores_is_refused(
    repository: Path, name: str, content: str, message: str
) -> None:
    file = repository / "policies" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    with pytest.raises(InvalidPolicies) as refused:
        policy_files(source(repository))
    assert message in str(refused.value)
    assert str(file) in str(refused.value)


@pytest.mark.parametrize("content", ['{"a": }', '{"a": NaN}', "[" * 100_000])
def test_policy_data_that_is_not_json_builds_no_bundle(repository: Path, content: str) -> None:
    (repository / "policies" / "policy_data" / "mine" / "data.json").write_text(content)
    with pytest.raises(InvalidPolicies, match="policy_data/mine/data.json.*not valid JSON"):
        policy_bundle(policy_files(source(repository)), BundleName.GATEWAY)


def test_a_directory_without_policies_does_not_drop_the_guardrails(tmp_path: Path) -> None:
    with pytest.raises(InvalidPolicies, match="contains no policies"):
        policy_files(source(tmp_path))


@pytest.mark.parametrize(
    ("name", "message"), [("x" * 120, "shorten it"), ("new\nline", "rename it"), ("\udcff", "UTF-8")]
)
def test_a_name_that_no_archive_can_contain_is_refused(repository: Path, name: str, message: str) -> None:
    (repository / "policies" / "gateway" / "guardrails" / f"{name}.rego").write_text(GUARDRAIL)
    with pytest.raises(InvalidPolicies, match=message):
        policy_bundle(policy_files(source(repository)), BundleName.GATEWAY)


def test_a_link_that_hides_a_guardrail_is_refused(repository: Path, tmp_path: Path) -> None:
    elsewhere = repository.rename(tmp_path / "elsewhere")
    repository.mkdir()
    for target in (elsewhere / "policies" / "gateway", tmp_path / "missing"):
        for name in ("gateway", "more.rego"):
            link = repository / name
            link.symlink_to(target)
            (repository / "other.rego").write_text(GUARDRAIL)
            with pytest.raises(InvalidPolicies, match=f"{link} is a link"):
                policy_files(source(repository))
            link.unlink()


def test_a_complete_directory_is_used_alone(tmp_path: Path) -> None:
    copy = shutil.copytree(POLICIES, tmp_path / "complete")
    (copy / "gateway" / "guardrails" / "contractors.rego").unlink()
    files = contents(policy_bundle(policy_files(source(copy, complete=True)), BundleName.GATEWAY).content)
    assert "gateway/guardrails/contractors.rego" not in files


def test_the_trino_bundle_is_independent_of_the_repository(repository: Path) -> None:
    assert policy_bundle(policy_files(source(repository)), BundleName.TRINO) == policy_bundle(
        policy_files(None), BundleName.TRINO
    )


def test_the_command_signs_the_bundle_and_refuses_a_wrong_key(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text(key_pair("RS256")[0])
    command = ["policy", "bundle", "--for", "gateway", "--directory", str(repository), "--no-check"]
    command += ["--signing-key", str(tmp_path / "key.pem"), "-o", str(tmp_path / "b.tar.gz")]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert ".signatures.json" in contents((tmp_path / "b.tar.gz").read_bytes())
    wrong = CliRunner().invoke(main, [*command, "--signing-algorithm", "ES256"])
    assert wrong.exit_code == 1
    assert "key.pem: the signing key is not a key for ES256" in wrong.output
