# SPDX-License-Identifier: Apache-2.0
"""The output of `lakegate up`: settings for clients without secrets."""

from __future__ import annotations

import io
import os
import re
import stat
import subprocess
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from rich.console import Console

from gateway import settings
from gateway.cli import main
from lakegate.local import engines, gateway, guide, ports, ready, spark_jars, toolchain
from lakegate.local.ready import ObjectStoreAccess, OpaAccess, OpenFgaAccess, Ready, User


@pytest.fixture
def described() -> Ready:
    return Ready(
        catalog_uri="http://127.0.0.1:1/catalog",
        management_uri="http://127.0.0.1:1/management",
        metrics_uri="http://127.0.0.1:9000/metrics",
        issuer="http://127.0.0.1:2",
        token_endpoint="http://127.0.0.1:2/token",
        project_id="p",
        warehouse="demo",
        warehouse_id="0192",
        users={
            name: User(id=f"oidc~{name}", token=f"s3cret-t-{name}", client_id=name, client_secret="s3cret-c")
            for name in ("alice", "trino", "trino-bridge")
        },
        s3=ObjectStoreAccess(
            endpoint="http://127.0.0.1:3",
            region="r",
            bucket="b",
            access_key="s3cret-a",
            secret_key="s3cret-s",
            profile={},
        ),
        postgres="postgresql://lakegate:s3cret-p@127.0.0.1:4/lakegate",
        openfga=OpenFgaAccess(url="http://127.0.0.1:5", store_id="s", model_id="m", token="s3cret-f"),
        opa=OpaAccess(url="http://127.0.0.1:6", token="s3cret-o"),
        bridge_key="s3cret-k",
        pids={},
    )


def _tools(jars: Path = Path("/no/jars")) -> toolchain.Tools:
    return toolchain.Tools(
        opa=Path("/opt/opa"),
        openfga=Path(),
        weed=Path(),
        nanoidp=Path(),
        policies=toolchain.shipped() / "policies",
        postgres_directory=None,
        jars=jars,
    )


def _summary(described: Ready, data: Path) -> str:
    output = io.StringIO()
    guide.show(Console(file=output, width=100), described, data)
    return output.getvalue()


def _shown(described: Ready, data: Path) -> str:
    output = io.StringIO()
    files = engines.engine_files(described, data / "e", _tools())
    guide.show_all(Console(file=output, width=100), described, data, files)
    return _summary(described, data) + output.getvalue()


def test_the_guide_shows_no_secret(described: Ready, tmp_path: Path) -> None:
    assert "s3cret" not in _shown(described, tmp_path)
    parts = (described, described.s3, described.openfga, described.opa, described.users)
    assert "s3cret" not in "".join(map(repr, parts))


def test_the_guide_has_complete_settings_for_every_engine(described: Ready, tmp_path: Path) -> None:
    text = _shown(described, tmp_path)
    for line in (
        "spark.sql.catalog.lakegate.uri=http://127.0.0.1:1/catalog",
        "spark.sql.catalog.lakegate.header.X-Iceberg-Access-Delegation=vended-credentials",
        "spark.sql.catalog.lakegate.rest-catalog-purge=true",
        "ATTACH 'demo' AS lakegate (TYPE ICEBERG, ENDPOINT 'http://127.0.0.1:1/catalog', SECRET lakegate,",
        "iceberg.rest-catalog.uri=http://127.0.0.1:1/catalog",
        "s3.endpoint=http://127.0.0.1:3",
        "iceberg.rest-catalog.nested-namespace-enabled=true",
        "iceberg.rest-catalog.view-endpoints-enabled=true",
        "access-control.name=opa",
        f"  --bundle {tmp_path}/e/trino/lakegate-trino.tar.gz",
    ):
        assert line in text.splitlines()
    assert 'load_catalog("lakegate", type="rest", uri="http://127.0.0.1:1/catalog", warehouse="demo"' in text


def test_the_summary_has_twelve_lines_with_what_a_user_needs_first(described: Ready, tmp_path: Path) -> None:
    lines = _summary(described, tmp_path).splitlines()
    assert len(lines) <= 12
    assert (
        "ports on 127.0.0.1: gateway 1, metrics 9000, identity provider 2, OPA 6, OpenFGA 5, PostgreSQL 4" in lines[2]
    )
    text = "\n".join(lines)
    for needed in (
        f"set -a; . {tmp_path}/gateway.env; set +a; lakegate login",
        f"TOKEN=$(curl -s -K {tmp_path}/clients/alice",
        f"lakegate status --data {tmp_path}",
        "Ctrl-C stops everything",
        "http://127.0.0.1:1/ui",
    ):
        assert needed in text


def test_spark_gets_the_installed_archives_or_the_command_that_installs_them(described: Ready, tmp_path: Path) -> None:
    def conf() -> str:
        return next(f.text for f in engines.engine_files(described, tmp_path, _tools(tmp_path)) if f.engine == "Spark")

    assert "\nspark.jars=" not in conf() and "lakegate setup --with-spark" in conf()
    for archive in spark_jars.ARCHIVES:
        (tmp_path / archive.file_name).touch()
    assert f"\nspark.jars={','.join(map(str, spark_jars.locate(tmp_path)))}\n" in conf()


def test_trino_gets_tokens_that_are_renewed(described: Ready, tmp_path: Path) -> None:
    engines.write(described, tmp_path, _tools())
    catalog = (tmp_path / "trino" / "catalog" / "lakegate.properties").read_text()
    assert engines.RENEWING in catalog and "oauth2.token=" not in catalog
    assert _variables(tmp_path / "trino" / "trino.env")["LAKEGATE_TRINO_CREDENTIAL"] == "trino:s3cret-c"
    script = (tmp_path / "trino" / "tokens.sh").read_text()
    assert "trino tokens --gateway http://127.0.0.1:1 --token-endpoint http://127.0.0.1:2/token" in script


def test_the_settings_of_the_user_reach_the_gateway_or_are_named() -> None:
    given = {"EVENTS__SINKS__A__KIND": "log", "OPA__URL": "http://x", "EMBEDDED__FAST": "true", "PG_HOST_W": "h"}
    used, unused = gateway.passed_on(given)
    assert used == {"EVENTS__SINKS__A__KIND": "log"}
    assert unused == ["LAKEGATE__OPA__URL", "LAKEGATE__PG_HOST_W"]


def test_settings_of_the_user_precede_those_of_the_stack_and_pages_are_added_to_the_allowed_origins() -> None:
    given = {"STORAGE_ENDPOINT_NETWORKS": "10.0.0.0/8", "ALLOW_ORIGIN": "https://a.example"}
    made = ready.generate()
    variables = gateway.gateway_variables(ports.FIRST_CHOICES, made, given, ("https://b.example",))
    assert variables["LAKEGATE__STORAGE_ENDPOINT_NETWORKS"] == "10.0.0.0/8"
    assert variables["LAKEGATE__ALLOW_ORIGIN"] == "https://a.example,https://b.example"
    assert variables["LAKEGATE__OPA__TOKEN"] == made.opa_gateway
    assert "LAKEGATE__ALLOW_ORIGIN" not in gateway.gateway_variables(ports.FIRST_CHOICES, made, {})


def test_the_settings_for_commands_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    file = gateway.write_environment(tmp_path, {"LAKEGATE__OPA__TOKEN": "s3cret x"})
    assert (file, stat.S_IMODE(file.stat().st_mode)) == (tmp_path / "gateway.env", 0o600)
    assert _variables(file) == {"LAKEGATE__OPA__TOKEN": "s3cret x"}


def test_the_list_of_the_settings_of_the_stack_is_complete() -> None:
    own = gateway.stack_settings(ports.FIRST_CHOICES, ready.generate())
    assert own.keys() - gateway.REPLACEABLE <= gateway.NOT_USED
    assert own.keys() >= gateway.REPLACEABLE
    names = {row.variable.removeprefix("LAKEGATE__") for row in settings.rows()}
    assert names >= gateway.NOT_USED | gateway.REPLACEABLE


def test_the_guide_names_all_users_on_a_narrow_terminal(described: Ready, tmp_path: Path) -> None:
    """Titles are shortened to the width of the terminal, so the names must not be in one."""
    output = io.StringIO()
    guide.show_all(Console(file=output, width=40), described, tmp_path, [])
    assert "Users: alice, trino, trino-bridge\n" in output.getvalue()


def test_the_guide_has_a_command_as_the_administrator(described: Ready, tmp_path: Path) -> None:
    """The commands need a token and the address of the gateway, without the path of the catalog."""
    lines = _shown(described, tmp_path).splitlines()
    assert "lakegate export --gateway http://127.0.0.1:1" in lines
    assert any(f"export LAKEGATE_TOKEN=$(curl -s -K {tmp_path}/clients/admin " in line for line in lines)


def test_the_files_of_trino_refer_to_variables_that_are_written(described: Ready, tmp_path: Path) -> None:
    files = engines.write(described, tmp_path, _tools())
    assert all((tmp_path / file.path).read_text() == file.text for file in files)
    trino = tmp_path / "trino"
    own, bridge = (_variables(trino / name) for name in ("trino.env", "bridge.env"))
    used = re.findall(r"\$\{ENV:(\w+)\}", "".join(path.read_text() for path in trino.glob("**/*.properties")))
    assert set(used) == set(own)
    assert own["LAKEGATE_BRIDGE_ENGINE_KEY"] == bridge["LAKEGATE_BRIDGE_ENGINE_KEY"] == "s3cret-k"
    assert bridge["LAKEGATE_BRIDGE_CATALOGS"] == '{"lakegate": "0192"}'
    assert bridge["LAKEGATE_BRIDGE_CLIENT_ID"] == "trino-bridge"
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in trino.glob("*.*"))


def _variables(path: Path) -> dict[str, str]:
    """Return the variables that a shell reads from a file."""
    script = f"set -a; . {path}; env"
    found = subprocess.run(["sh", "-c", script], env={}, capture_output=True, text=True, check=True).stdout
    return dict(line.split("=", 1) for line in found.splitlines() if line.startswith("LAKEGATE_"))


def test_a_client_secret_is_stored_in_a_private_file_for_curl(described: Ready, tmp_path: Path) -> None:
    text = _shown(described, tmp_path)
    client = tmp_path / "clients" / "alice"
    assert f"-K {client}" in text
    assert client.read_text() == 'user = "alice:s3cret-c"\n'
    assert [stat.S_IMODE(each.stat().st_mode) for each in (client, client.parent)] == [0o600, 0o700]


@pytest.mark.parametrize(("is_running", "text"), [(True, "running: opa, gateway"), (False, "not running: gateway; ")])
def test_the_status_ends_with_1_if_a_part_has_ended(
    described: Ready, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_running: bool, text: str
) -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    pids = {"opa": [os.getpid()], "gateway": [os.getpid() if is_running else ended.pid]}
    ready.write(tmp_path / ready.FILE, msgspec.structs.replace(described, pids=pids))
    monkeypatch.setattr(toolchain, "locate", lambda _: _tools())
    done = CliRunner().invoke(main, ["status", "--data", str(tmp_path)])
    assert (done.exit_code, text in done.output) == (0 if is_running else 1, True), done.output


def test_the_ready_file_is_private_and_reads_back_the_same(described: Ready, tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    ready.write(path, described)
    assert ready.read(path) == described
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert set(msgspec.json.decode(path.read_bytes())) == set(Ready.__struct_fields__)
