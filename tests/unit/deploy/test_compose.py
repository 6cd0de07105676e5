# SPDX-License-Identifier: Apache-2.0
"""Rules for the deployment files, checked without starting a container."""

import json
import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import gateway.features.all_routes  # noqa: F401 - the import declares every operation
from gateway import settings
from gateway.access.operation import OPERATIONS
from gateway.cli import main
from gateway.settings.env import PREFIX

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("lakegate:")}
REFERENCE = re.compile(r"\$\{(?P<name>[A-Z0-9_]+)(?P<rest>[^}]*)\}")
SECRETS = [
    line[:-1] for line in (DEPLOY / ".env.example").read_text().splitlines() if re.fullmatch(r"[A-Z0-9_]+=", line)
]


def environment_of(name: str) -> dict[str, str]:
    return dict(SERVICES[name].get("environment", {}))


def strings_in(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in strings_in(part)]
    return [text for part in value for text in strings_in(part)] if isinstance(value, list) else [str(value)]


def test_every_component_has_a_service() -> None:
    assert SERVICES.keys() >= {"postgres", "openfga", "opa", "object-store", "keycloak", "migrate", "serve"}
    assert OURS.keys() == {"migrate", "serve", "bucket"}


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - OURS.keys()))
def test_third_party_images_are_pinned_to_a_version(name: str) -> None:
    image = SERVICES[name]["image"]
    tag = image.partition("@")[0].rpartition(":")[2]
    assert re.match(r"v?\d+\.\d+", tag), f"{image}: expected a tag with at least major and minor version"
    assert "$" not in image


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_lakegate_variable_of_a_service_is_a_setting(name: str) -> None:
    ours = {key: "1" for key in environment_of(name) if key.startswith(PREFIX)}
    known = {row.variable for row in settings.rows()}
    assert ours.keys() <= known


def test_every_variable_named_in_the_deployment_files_is_a_setting() -> None:
    """Comments and texts count too, because readers copy names from them."""
    known = {row.variable for row in settings.rows()}
    for file in sorted(each for each in DEPLOY.rglob("*") if each.is_file() and each.name != ".env"):
        for name in re.findall(r"LAKEGATE__[A-Z0-9_]*[A-Z0-9]\b", file.read_text()):
            # A name may be the prefix of a section: `LAKEGATE__S3__…`.
            assert name in known or any(each.startswith(f"{name}__") for each in known), f"{file.name}: {name}"


def test_commands_of_the_image_and_its_services_exist() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert 'ENTRYPOINT ["lakegate"]' in dockerfile
    commands = [json.loads(found) for found in re.findall(r"^CMD (\[.+\])$", dockerfile, re.MULTILINE)]
    commands += [json.loads(found)[1:] for found in re.findall(r" CMD (\[\"lakegate\".+\])$", dockerfile, re.MULTILINE)]
    commands += [service["command"] for name, service in OURS.items() if "entrypoint" not in service]
    for template in (DEPLOY / "helm" / "templates").iterdir():
        commands += [
            json.loads(found) for found in re.findall(r"^ *args: (\[.+\])$", template.read_text(), re.MULTILINE)
        ]
    assert sorted(words[0] for words in commands) == ["healthcheck", "migrate", "serve", "serve", "serve"]
    assert {words[0] for words in commands} <= set(main.commands)


def test_probes_use_the_served_port_and_need_no_token() -> None:
    deployment = (DEPLOY / "helm" / "templates" / "deployment.yaml").read_text()
    open_paths = {path for each in OPERATIONS.values() if each.is_public() for path in each.paths()}
    requested = re.findall(r"httpGet: \{path: ([^,]+), port: (\w+)\}", deployment)
    assert {path for path, _ in requested} == {"/health"} <= open_paths
    probed = {port for _, port in requested} | set(re.findall(r"tcpSocket: \{port: (\w+)\}", deployment))
    assert probed == {"http"}
    (port,) = re.findall(r"- name: http\n\s+containerPort: (\d+)", deployment)
    configured = (DEPLOY / "helm" / "templates" / "_helpers.tpl").read_text()
    assert f'{{name: LAKEGATE__LISTEN_PORT, value: "{port}"}}' in configured
    assert f"EXPOSE {port}" in (DEPLOY / "Dockerfile").read_text()
    assert any(f":{port}" in each for service in SERVICES.values() for each in service.get("ports", []))


def test_serve_has_every_required_setting() -> None:
    given = {
        key: REFERENCE.sub("0" * 64, value) for key, value in environment_of("serve").items() if key.startswith(PREFIX)
    }
    loaded = settings.load(given)
    loaded.require_serving()
    assert loaded.opa.token
    assert loaded.openfga.api_key
    assert loaded.skip_storage_validation is False


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_dependency_conditions_can_be_satisfied(name: str) -> None:
    for other, how in SERVICES[name].get("depends_on", {}).items():
        assert other in SERVICES
        match how["condition"]:
            case "service_healthy":
                check = SERVICES[other].get("healthcheck", {})
                # The Lakegate image has a health check, which a service can disable.
                assert check.get("test") or (other in OURS and not check.get("disable")), f"{other} has no health check"
            case "service_completed_successfully":
                assert SERVICES[other]["restart"] == "no", f"{other} would be restarted and never be completed"
            case condition:
                assert condition == "service_started"


def test_a_network_namespace_is_shared_only_with_a_dependency() -> None:
    for name, service in SERVICES.items():
        mode = service.get("network_mode", "")
        assert not mode or (mode.startswith("service:") and "networks" not in service and "ports" not in service)
        if mode:
            assert mode.removeprefix("service:") in reaches(name), (
                f"{name} starts before the service whose network it uses"
            )


def reaches(name: str) -> set[str]:
    direct = set(SERVICES[name].get("depends_on", {}))
    return direct.union(*(reaches(other) for other in direct))


def test_ports_are_published_on_loopback_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in ports)
    for name in ("postgres", "openfga", "opa"):
        assert SERVICES[name]["networks"] == ["inner"]
    assert COMPOSE["networks"]["inner"]["internal"] is True


def test_secrets_come_from_the_env_file_and_are_never_on_a_command_line() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    used = {match["name"]: match["rest"] for match in REFERENCE.finditer(text)}
    assert set(used) - {"LAKEGATE_TAG"} == set(SECRETS)
    assert all(rest.startswith(":?") for name, rest in used.items() if name != "LAKEGATE_TAG"), (
        "each variable must be required (`:?`)"
    )
    for name, service in SERVICES.items():
        spoken = strings_in([service.get(part, "") for part in ("command", "entrypoint", "healthcheck", "labels")])
        assert not [text for text in spoken if "$" in text.replace("$$", "")], name


def test_no_secret_has_a_value_in_a_file() -> None:
    for name in SERVICES:
        for key, value in environment_of(name).items():
            if re.search(r"PASSWORD|SECRET|TOKEN|API_KEY|_KEY$|PRESHARED|ACCESS_KEY", key):
                assert REFERENCE.fullmatch(str(value)), f"{name}: {key}"
    for file in DEPLOY.rglob("*"):
        if file.is_file() and file.name != ".env":
            found = re.search(r"[0-9a-f]{32,}|AKIA[A-Z0-9]{12,}|-----BEGIN|://[^/\s:]+:[^$/\s@]+@", file.read_text())
            assert found is None, f"{file.name}: {found}"


def test_each_secret_reaches_only_the_services_that_need_it() -> None:
    holders = {
        secret: {name for name in SERVICES if any(secret in text for text in strings_in(environment_of(name)))}
        for secret in SECRETS
    }
    assert holders["OPA_OPERATOR_TOKEN"] == {"opa"}
    assert holders["OPA_GATEWAY_TOKEN"] == {"opa", "serve"}
    assert holders["OPENFGA_API_KEY"] == {"openfga", "serve", "migrate"}
    assert holders["OPENFGA_DB_PASSWORD"] == {"postgres", "openfga", "openfga-migrate"}
    assert holders["PG_ENCRYPTION_KEY"] == {"serve", "migrate"}
    assert holders["POSTGRES_PASSWORD"] == {"postgres"}
    assert holders["S3_SECRET_KEY"] == {"bucket"}, (
        "only the bucket service may have the key; the gateway gets it with the warehouse"
    )


def test_decision_engines_require_a_key() -> None:
    assert environment_of("openfga")["OPENFGA_AUTHN_METHOD"] == "preshared"
    assert environment_of("openfga")["OPENFGA_PLAYGROUND_ENABLED"] == "false"
    assert {"--authentication=token", "--authorization=basic"} <= set(SERVICES["opa"]["command"])


def test_opa_refuses_changes_of_policy_data_that_it_would_lose() -> None:
    assert "--bundle" in SERVICES["opa"]["command"]
    assert (DEPLOY.parent / "policies" / "system" / "authz.rego").is_file()


def test_insecure_defaults_of_the_object_store_are_disabled() -> None:
    arguments = set(SERVICES["object-store"]["command"])
    assert {"-disableHttp=true", "-ip.bind=127.0.0.1", "-s3.port.iceberg=0", "-s3.autoCreateBucket=false"} <= arguments
    iam = json.loads(REFERENCE.sub("x", COMPOSE["configs"]["store-iam"]["content"]))
    (role,) = iam["roles"]
    (trust,) = role["trustPolicy"]["Statement"]
    assert trust["Principal"] == {"AWS": ["arn:aws:iam::000000000000:user/gateway"]}
    assert iam["policy"] == {"defaultEffect": "Deny"}
    (reach,) = iam["policies"][0]["document"]["Statement"]
    assert reach["Resource"] == ["arn:aws:s3:::lakehouse", "arn:aws:s3:::lakehouse/*"]
    assert json.loads(REFERENCE.sub("x", COMPOSE["configs"]["store-identities"]["content"]))
    security = COMPOSE["configs"]["store-security"]["content"]
    sections = re.findall(r"^\[(.+)\]\nkey = \"\$\{", security, re.MULTILINE)
    assert sections == ["jwt.signing", "jwt.signing.read", "jwt.filer_signing", "jwt.filer_signing.read"]


@pytest.mark.parametrize("name", ["serve", "migrate", "bucket", "openfga", "openfga-migrate", "opa"])
def test_services_run_without_privileges_where_possible(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_gateway_and_keycloak_use_the_same_issuer() -> None:
    issuer = environment_of("serve")["LAKEGATE__OPENID_PROVIDER_URI"]
    realm = json.loads((DEPLOY / "keycloak" / "lakegate-realm.json").read_text())
    assert issuer == f"{environment_of('keycloak')['KC_HOSTNAME']}/realms/{realm['realm']}"
    assert SERVICES["serve"]["network_mode"] == SERVICES["keycloak"]["network_mode"] == "service:object-store"
    assert environment_of("keycloak")["KC_HTTP_MANAGEMENT_PORT"] in str(SERVICES["keycloak"]["healthcheck"])


def test_every_realm_client_issues_tokens_for_the_gateways_audience() -> None:
    realm = json.loads((DEPLOY / "keycloak" / "lakegate-realm.json").read_text())
    assert {client["clientId"] for client in realm["clients"]} == {"spark-etl", "lakegate-cli"}
    audience = environment_of("serve")["LAKEGATE__OPENID_AUDIENCE"]
    for client in realm["clients"]:
        (mapper,) = [one for one in client["protocolMappers"] if one["protocolMapper"] == "oidc-audience-mapper"]
        assert mapper["config"]["included.custom.audience"] == audience
        assert mapper["config"]["access.token.claim"] == "true"
        assert mapper["config"]["id.token.claim"] == "false", "an ID token must not look like an access token"
        assert client["directAccessGrantsEnabled"] is client["implicitFlowEnabled"] is False
    # An import with client scopes replaces Keycloak's built-in ones, which add the claim `sub`.
    assert "clientScopes" not in realm


def test_the_pages_log_users_in_with_a_public_client_of_the_realm() -> None:
    serve = settings.load({key: REFERENCE.sub("0" * 64, value) for key, value in environment_of("serve").items()})
    realm = json.loads((DEPLOY / "keycloak" / "lakegate-realm.json").read_text())
    (client,) = (each for each in realm["clients"] if each["clientId"] == serve.ui.openid_client_id)
    assert client["publicClient"] is client["standardFlowEnabled"] is True
    assert client["attributes"]["oauth2.device.authorization.grant.enabled"] == "true", "`lakegate login` needs it"
    assert set(client["redirectUris"]) == {f"{serve.base_uri}/ui", f"{serve.base_uri}/swagger-ui/oauth2-redirect.html"}
    assert client["webOrigins"] == [serve.base_uri], "the page requests the token with a script of this origin"
    logins = re.findall(r"--issuer (\S+) --client-id (\S+?)\)?$", (DEPLOY / "README.md").read_text(), re.MULTILINE)
    assert logins == [(serve.openid_provider_uri, serve.ui.openid_client_id)] * 2


def test_the_secrets_of_the_realm_come_from_keycloaks_environment() -> None:
    realm = json.loads((DEPLOY / "keycloak" / "lakegate-realm.json").read_text())
    secrets = [client["secret"] for client in realm["clients"] if "secret" in client]
    secrets += [credential["value"] for user in realm["users"] for credential in user["credentials"]]
    names = {found["name"] for secret in secrets if (found := REFERENCE.fullmatch(secret))}
    assert len(names) == len(secrets) == 3
    assert names <= environment_of("keycloak").keys()


def test_make_env_writes_distinct_secrets_and_replaces_none(tmp_path: Path) -> None:
    for file in ("make-env", ".env.example"):
        (tmp_path / file).write_bytes((DEPLOY / file).read_bytes())
    assert os.access(DEPLOY / "make-env", os.X_OK)
    ran = subprocess.run(["sh", "./make-env"], cwd=tmp_path, check=True, capture_output=True, text=True)
    written = dict(
        line.split("=", 1) for line in (tmp_path / ".env").read_text().splitlines() if line and not line.startswith("#")
    )
    assert list(written) == SECRETS
    assert all(re.fullmatch(r"[0-9a-f]{64}", value) for value in written.values())
    assert len(set(written.values())) == len(written)
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600
    assert not [value for value in written.values() if value in ran.stdout + ran.stderr]
    again = subprocess.run(["sh", "./make-env"], cwd=tmp_path, check=False, capture_output=True)
    assert again.returncode == 1


def test_the_env_file_cannot_be_committed() -> None:
    assert ".env" in (DEPLOY / ".gitignore").read_text().splitlines()


def test_each_database_role_can_connect_to_its_own_database_only() -> None:
    sql = (DEPLOY / "postgres" / "roles.sql").read_text()
    variables = set(re.findall(r"^\\getenv \w+ (\w+)$", sql, re.MULTILINE))
    assert variables == {"LAKEGATE_DB_PASSWORD", "OPENFGA_DB_PASSWORD", "KEYCLOAK_DB_PASSWORD"}
    assert variables <= environment_of("postgres").keys()
    assert "REVOKE CONNECT, TEMPORARY ON DATABASE lakegate, openfga, keycloak FROM PUBLIC" in sql


def test_mounted_files_exist() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (DEPLOY / source).exists(), source
                assert volume.endswith(":ro"), volume
            else:
                assert source in COMPOSE["volumes"]
        for config in service.get("configs", []):
            assert config["source"] in COMPOSE["configs"]
