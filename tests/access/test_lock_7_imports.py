# SPDX-License-Identifier: Apache-2.0
"""Lock 7: the import contracts hold, and each of them detects its violation."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Forbidden imports for a sample package, by the beginning of the name of the contract that must fail.
PLANTED = {
    "Rooms import only rooms below them": ("access/door/door.py", "import gateway.fga.client"),
    "Nouns import only nouns below them": ("features/grants/role_guards.py", "import gateway.features.tables.tables"),
    "Groups of statements import only groups": ("db/schema/tables.py", "import gateway.db.engine.database"),
    "Only routes know HTTP": ("features/tables/tables.py", "import gateway.api.request_encoding"),
    "Routes reach the database through": ("features/tables/routes.py", "import gateway.db.engine.database"),
    "Only the api room and routes import Litestar": ("features/tables/tables.py", "import litestar"),
    "Only the Spark jobs import PySpark": ("features/tasks/jobs.py", "import pyspark"),
    "Only the STS adapter and the signer of requests": ("vending/vendor.py", "import boto3"),
    "Only the modules for tokens import": ("storage/gcs/client.py", "import google.auth"),
    "Only its adapter imports the OpenFGA client": ("features/grants/grants.py", "import openfga_sdk"),
    "Only the storage adapter imports obstore": ("features/metadata/metadata_files.py", "import obstore"),
    "Only its provider imports the client of HDFS": ("storage/registry.py", "import hdfs_native"),
    "Only the registry imports providers": ("features/credentials/credentials.py", "import gateway.storage.s3.profile"),
    "Modules for profiles, policies and proofs": ("storage/s3/profile.py", "import gateway.storage.files"),
    "A proof shares no code": ("storage/s3/aws/proof.py", "import gateway.storage.s3.aws.session_policy"),
    "Of the adapters, only vending": ("db/engine/database.py", "import gateway.storage.files"),
    "Only the secret store in Vault imports its client": ("opa/decider.py", "import hvac"),
    "Only their event sinks import": ("telemetry/traces.py", "import confluent_kafka"),
    "Only the modules for traces and metrics by OTLP": ("audit/sink.py", "import opentelemetry.trace"),
    "Only the database room imports SQLAlchemy": ("features/tables/commits.py", "import sqlalchemy"),
    "Only the composition root reads settings": ("features/server/config.py", "import gateway.settings"),
    "Only use cases and the composition root": ("serving.py", "import gateway.db.engine.database"),
    "The conformance kits import ports": ("../lakegate/conformance/secrets.py", "import gateway.secret_stores.vault"),
    "Apply reaches the catalog by HTTP only": ("apply/planner.py", "import gateway.features.grants.checks"),
    "Only the command line imports what is not": ("identity/tokens.py", "import lakegate.reader"),
    "Packages beside the gateway": ("../lakegate/reader/table.py", "import lakegate.local"),
    "The local stack and the conformance kits": ("../lakegate/local/stack.py", "import gateway.app"),
    "The reader, the Spark jobs": ("../lakegate/spark/run.py", "import gateway.iceberg.types"),
    "Shared restrictions are pure": ("../lakegate/restrictions/wire.py", "import pyarrow"),
    "Only the door mints permits": ("features/grants/checks.py", "from gateway.access.door import _mint"),
}

_BESIDE = ("conformance/secrets", "local/stack", "reader/table", "restrictions/wire", "spark/run", "value_messages")

#: Modules named by the contracts, which the sample package must contain.
_MODULES = (
    *("app", "assembly.adapters", "cli.common", "serving", "settings"),
    *(
        "access.door._mint",
        "access.door.door",
        "db.engine.database",
        "db.schema.tables",
        "api.forms",
        "fga.client",
        "vending.vendor",
        "features.tables.routes",
        "features.engines.oauth_routes",
        "features.principals.scim_routes",
        "features.server.documentation_routes",
        "features.server.sign_in_routes",
    ),
    *("storage.connector", "storage.examine", "storage.object_files", "storage.registry"),
    *(f"storage.s3.{name}" for name in ("client", "confinement", "credential", "profile")),
    *(f"storage.s3.aws.{name}" for name in ("identity_rules", "proof", "session_policy", "sts")),
    *(f"storage.s3.{name}" for name in ("oss.policy", "oss.proof", "r2.proof", "r2.scope")),
    *(f"storage.gcs.{name}" for name in ("access_boundary", "client", "tokens")),
    *("storage.adls.delegation", "storage.adls.sas"),
    *("storage.files", "features.tasks.jobs", "opa.decider", "identity.tokens"),
    *(
        "audit.sink",
        "events.bus",
        "telemetry.logs",
        "telemetry.traces",
        "obligations.merging",
        "access.bodies",
        "scope.location",
        "iceberg.types",
    ),
    *(
        "features.tables.tables",
        "features.tables.commits",
        "features.server.config",
        "features.credentials.credentials",
        "features.metadata.metadata_files",
    ),
    *("features.grants.grants", "features.grants.checks", "features.grants.role_guards"),
    "apply.planner",
    *("secret_stores.vault", "events.kafka", "events.nats"),
    *(f"../lakegate/{name}" for name in _BESIDE),
)


def _lint(where: Path, config: Path) -> str:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--config", str(config)]
    done = subprocess.run(
        command,
        cwd=where,
        env={"PYTHONPATH": str(where), "PATH": "/usr/bin:/bin", "COLUMNS": "300"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return done.stdout + done.stderr


def _verdicts(output: str) -> dict[str, bool]:
    """Return True for each contract that is kept, by its name."""
    found = {}
    for line in output.splitlines():
        for word, kept in ((" KEPT", True), (" BROKEN", False)):
            name, verdict, _ = line.partition(word)
            if verdict:
                found[name] = kept
    return found


def _small_house(at: Path, planted: dict[str, tuple[str, str]]) -> str:
    for module in _MODULES:
        file = at / "gateway" / (module if "/" in module else module.replace(".", "/"))
        file = file.with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    for file in [*at.glob("*"), *at.rglob("*/*")]:
        if file.is_dir():
            (file / "__init__.py").write_text("")
    for path, statement in planted.values():
        file = at / "gateway" / path
        assert file.exists(), path
        file.write_text(f"{file.read_text()}{statement}\n")
    return _lint(at, ROOT / "pyproject.toml")


def test_the_import_contracts_hold() -> None:
    verdicts = _verdicts(_lint(ROOT, ROOT / "pyproject.toml"))
    assert len(verdicts) == len(PLANTED)
    assert [name for name, kept in verdicts.items() if not kept] == []


def test_every_contract_has_a_planted_violation() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    names = [contract["name"] for contract in contracts]
    assert len(names) == len(PLANTED)
    for beginning in PLANTED:
        assert len([name for name in names if name.startswith(beginning)]) == 1, beginning


def test_a_planted_violation_breaks_each_contract(tmp_path: Path) -> None:
    verdicts = _verdicts(_small_house(tmp_path, PLANTED))
    for beginning in PLANTED:
        assert [kept for name, kept in verdicts.items() if name.startswith(beginning)] == [False], beginning


@pytest.mark.parametrize(
    ("proof", "builder"), [("aws", "aws.session_policy"), ("oss", "oss.policy"), ("r2", "r2.scope")]
)
def test_a_proof_that_imports_its_builder_breaks_the_contract_in_each_group(
    proof: str, builder: str, tmp_path: Path
) -> None:
    planted = (f"storage/s3/{proof}/proof.py", f"import gateway.storage.s3.{builder}")
    verdicts = _verdicts(_small_house(tmp_path, {"A proof shares no code": planted}))
    assert [kept for name, kept in verdicts.items() if name.startswith("A proof shares no code")] == [False]


@pytest.mark.parametrize("beginning", ["Only the door mints permits", "Only use cases and the composition root"])
def test_a_planted_violation_breaks_only_its_own_contract(beginning: str, tmp_path: Path) -> None:
    verdicts = _verdicts(_small_house(tmp_path, {beginning: PLANTED[beginning]}))
    assert [name for name, kept in verdicts.items() if not kept and not name.startswith(beginning)] == []
    assert False in verdicts.values()


def test_the_sample_package_without_a_violation_is_clean(tmp_path: Path) -> None:
    verdicts = _verdicts(_small_house(tmp_path, {}))
    assert len(verdicts) == len(PLANTED)
    assert False not in verdicts.values()
