# SPDX-License-Identifier: Apache-2.0
"""Settings: misspelt and invalid values are refused, and secrets stay hidden."""

from __future__ import annotations

import ast
import logging
from pathlib import Path

import pytest

from gateway import settings
from gateway.settings import Secret, SettingsError
from gateway.settings.postgres import asyncpg_url

_ROOT = Path(__file__).parents[2]

_SERVING = {
    "LAKEGATE__OPENID_PROVIDER_URI": "https://issuer.example",
    "LAKEGATE__OPENID_AUDIENCE": "lakegate",
    "LAKEGATE__PG_ENCRYPTION_KEY": "k",
    "LAKEGATE__PG_DATABASE_URL_WRITE": "postgresql://u:p@db/lakegate",
}


def test_settings_without_variables_have_their_defaults() -> None:
    read = settings.load({"PATH": "/bin"})
    assert (read.bind_ip, read.listen_port, read.metrics.port) == ("127.0.0.1", 8181, 9000)
    assert read.openid_subject_claim == ("oid", "sub")


@pytest.mark.parametrize(
    ("variable", "remedy"),
    [
        ("LAKEKEEPER__LISTEN_PORT", "its name is LAKEGATE__LISTEN_PORT here; rename it"),
        (
            "LAKEKEEPER__OPENID_PROVIDERS__HOME__URI",
            "its name is LAKEGATE__OPENID_PROVIDERS__HOME__URI here; rename it",
        ),
        ("LAKEKEEPER__KAFKA_TOPIC", "no setting here has its name; remove it"),
    ],
)
def test_a_variable_of_lakekeeper_is_named_with_its_name_here(variable: str, remedy: str) -> None:
    with pytest.raises(SettingsError) as refused:
        settings.load({variable: "1"})
    assert str(refused.value) == f"{variable} is a variable of Lakekeeper and has no effect: {remedy}"


def test_a_variable_of_lakekeeper_beside_its_counterpart_is_ignored() -> None:
    read = settings.load({"LAKEKEEPER__LISTEN_PORT": "1", "LAKEGATE__LISTEN_PORT": "2"})
    assert read.listen_port == 2


@pytest.mark.parametrize(
    ("variable", "text", "path", "expected"),
    [
        ("LISTEN_PORT", "9999", "listen_port", 9999),
        ("METRICS__PORT", "9001", "metrics.port", 9001),
        ("OPENFGA__STORE_NAME", "other", "openfga.store_name", "other"),
        ("ENABLE_DEFAULT_PROJECT", "false", "enable_default_project", False),
        ("RESERVED_NAMESPACES", " a, b ,,c", "reserved_namespaces", ("a", "b", "c")),
        ("OPENID_SUBJECT_CLAIM", "sub", "openid_subject_claim", ("sub",)),
        ("MAX_REQUEST_TIME", "30s", "max_request_time", 30.0),
        ("MAX_REQUEST_TIME", "500ms", "max_request_time", 0.5),
        ("MAX_REQUEST_TIME", "2m", "max_request_time", 120.0),
        ("MAX_REQUEST_TIME", "45", "max_request_time", 45.0),
        ("EMBEDDED__FAST", "true", "embedded.fast", True),
        ("EMBEDDED__FREE_PORTS", "true", "embedded.free_ports", True),
    ],
)
def test_a_variable_sets_its_field(variable: str, text: str, path: str, expected: object) -> None:
    value: object = settings.load({f"LAKEGATE__{variable}": text})
    for name in path.split("."):
        value = getattr(value, name)
    assert value == expected


def test_a_misspelt_variable_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(
        SettingsError, match=r"LAKEGATE__OPENID_AUDIENC is not .*did you mean LAKEGATE__OPENID_AUDIENCE\?"
    ):
        settings.load({"LAKEGATE__OPENID_AUDIENC": "x"})


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(SettingsError) as refused:
        settings.load({"LAKEGATE__LISTEN_PORT": "0", "LAKEGATE__NONSENSE_AT_ALL": "1", "LAKEGATE__WORKERS": "two"})
    assert len(str(refused.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("LISTEN_PORT", "65536"),
        ("LISTEN_PORT", ""),
        ("WORKERS", "0"),
        ("MAX_REQUEST_TIME", "-1s"),
        ("MAX_REQUEST_TIME", "30 years"),
        ("LOG_LEVEL", "chatty"),
        ("SKIP_STORAGE_VALIDATION", "perhaps"),
        ("SERVER_ID", "not-a-uuid"),
        ("OPENID_SUBJECT_CLAIM", ","),
        ("ENGINE_PROBES__VOUCHED", '["oidc~jobs"]'),
        ("OPENFGA__STORE_NAME", "ab"),
    ],
)
def test_an_invalid_value_is_refused_by_setting_name(variable: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"^LAKEGATE__{variable}: "):
        settings.load({f"LAKEGATE__{variable}": text})


def test_no_text_form_of_settings_contains_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    read = settings.load(
        _SERVING
        | {"LAKEGATE__OPENFGA__API_KEY": "s3cret-key", "LAKEGATE__PG_DATABASE_URL_WRITE": "postgresql://u:s3cret@h/d"}
    )
    logging.getLogger("test").warning("settings %s %r", read.openfga.api_key, read)
    assert "s3cret" not in f"{read} {read!r} {read.openfga.api_key} {read.write_url()}" + caplog.text
    assert read.openfga.api_key is not None and read.openfga.api_key.reveal() == "s3cret-key"


def test_the_error_of_a_refused_setting_contains_no_other_secret() -> None:
    with pytest.raises(SettingsError) as refused:
        settings.load({"LAKEGATE__PG_PASSWORD": "s3cret", "LAKEGATE__PG_PORT": "none", "LAKEGATE__OPA__TOKN": "s3cret"})
    assert "s3cret" not in str(refused.value)


def test_secrets_compare_by_value() -> None:
    assert Secret("a") == Secret("a") and hash(Secret("a")) == hash(Secret("a"))
    assert Secret("a") != Secret("b") and Secret("a") != "a"
    assert not Secret("")


@pytest.mark.parametrize(
    "missing", ["OPENID_PROVIDER_URI", "OPENID_AUDIENCE", "PG_ENCRYPTION_KEY", "PG_DATABASE_URL_WRITE"]
)
def test_serving_is_refused_without_a_required_setting(missing: str) -> None:
    settings.load(_SERVING).require_serving()
    with pytest.raises(SettingsError, match=f"LAKEGATE__{missing}"):
        settings.load({name: value for name, value in _SERVING.items() if not name.endswith(missing)}).require_serving()


def test_a_database_url_is_built_from_its_parts_with_escaping() -> None:
    read = settings.load(
        {
            "LAKEGATE__PG_HOST_W": "db.example",
            "LAKEGATE__PG_USER": "u@x",
            "LAKEGATE__PG_PASSWORD": "p:/?#",
            "LAKEGATE__PG_DATABASE": "lake gate",
        }
    )
    assert read.write_url().reveal() == "postgresql://u%40x:p%3A%2F%3F%23@db.example:5432/lake%20gate"
    assert read.read_url() is None


def test_the_replica_is_used_only_if_configured() -> None:
    assert settings.load(_SERVING).read_url() is None
    url = "postgresql://u:p@replica/lakegate"
    read = settings.load(_SERVING | {"LAKEGATE__PG_DATABASE_URL_READ": url}).read_url()
    assert read is not None and read.reveal() == url
    parts = {"PG_HOST_R": "replica", "PG_USER": "u", "PG_DATABASE": "lakegate", "PG_PASSWORD": "p"}
    read = settings.load(_SERVING | {f"LAKEGATE__{name}": value for name, value in parts.items()}).read_url()
    assert read is not None and read.reveal() == "postgresql://u:p@replica:5432/lakegate"


def test_an_incomplete_replica_or_tls_in_its_url_is_refused() -> None:
    with pytest.raises(SettingsError, match="LAKEGATE__PG_DATABASE_URL_READ must be set, or else LAKEGATE__PG_USER"):
        settings.load(_SERVING | {"LAKEGATE__PG_HOST_R": "replica"}).require_serving()
    url = "postgresql://u:hidden@replica/lakegate?sslmode=disable"
    with pytest.raises(SettingsError, match="PG_SSL_MODE"):
        settings.load(_SERVING | {"LAKEGATE__PG_DATABASE_URL_READ": url}).require_serving()


def test_a_remote_replica_of_a_local_primary_needs_verified_tls() -> None:
    local = {**_SERVING, "LAKEGATE__PG_DATABASE_URL_WRITE": "postgresql://u:p@127.0.0.1/lakegate"}
    read = settings.load(local | {"LAKEGATE__PG_DATABASE_URL_READ": "postgresql://u:p@replica/lakegate"})
    assert (read.postgres_tls_mode(), read.postgres_tls_mode(read.read_url())) == ("prefer", "verify-full")


@pytest.mark.parametrize("given", ["postgres://u@h/d", "postgresql://u@h/d", "postgresql+asyncpg://u@h/d"])
def test_a_database_url_is_translated_for_the_driver(given: str) -> None:
    assert asyncpg_url(Secret(given)) == "postgresql+asyncpg://u@h/d"


@pytest.mark.parametrize("text", ["ssl=verify-full", "sslmode=require", "application_name=a&sslrootcert=/ca.pem"])
def test_tls_parameters_in_a_database_url_are_refused(text: str) -> None:
    read = settings.load(_SERVING | {"LAKEGATE__PG_DATABASE_URL_WRITE": f"postgresql://u:hidden@h/d?{text}"})
    with pytest.raises(settings.SettingsError, match="LAKEGATE__PG_SSL_MODE") as refused:
        read.write_url()
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "mode"),
    [
        ("postgresql://u:p@db.example/d", "verify-full"),
        ("postgresql://u:p@10.0.0.5:5433/d", "verify-full"),
        ("postgresql://u:p@localhost.example/d", "verify-full"),
        ("postgresql:///d", "verify-full"),
        ("postgresql://u@127.0.0.1:5432/d?host=db.example", "verify-full"),
        ("postgresql://u@127.0.0.1,db.example/d", "verify-full"),
        ("postgresql://u@/d?host=127.0.0.1:5432&host=db.example:5432", "verify-full"),
        ("postgresql://u:p@127.0.0.1:5432/d", "prefer"),
        ("postgresql://u:p@localhost/d", "prefer"),
        ("postgresql://u:p@[::1]:5432/d", "prefer"),
        ("postgresql://u@/d?host=/run/postgresql", "prefer"),
        ("postgresql://u@%2Frun%2Fpostgresql/d", "prefer"),
    ],
)
def test_a_remote_database_needs_verified_tls(url: str, mode: str) -> None:
    read = settings.load(_SERVING | {"LAKEGATE__PG_DATABASE_URL_WRITE": url})
    assert read.postgres_tls_mode() == mode
    for text in ("disable", "require"):
        chosen = _SERVING | {"LAKEGATE__PG_DATABASE_URL_WRITE": url, "LAKEGATE__PG_SSL_MODE": text}
        assert settings.load(chosen).postgres_tls_mode() == text


@pytest.mark.parametrize("networks", ["10.0.0.1/8", "private", "127.0.0.0/8,nonsense"])
def test_an_invalid_storage_network_is_refused(networks: str) -> None:
    read = settings.load(_SERVING | {"LAKEGATE__STORAGE_ENDPOINT_NETWORKS": networks})
    with pytest.raises(SettingsError, match=r"^LAKEGATE__STORAGE_ENDPOINT_NETWORKS: .*CIDR"):
        read.require_serving()


def test_storage_profiles_may_name_only_public_addresses_by_default() -> None:
    assert settings.load(_SERVING).storage_rules().endpoints.networks == ()


@pytest.mark.parametrize(
    "origin",
    ["https://a.example/", "https://A.example", "https://*.example", "https://u@a.example", "null", "a.example", "**"],
)
def test_an_origin_that_no_browser_sends_is_refused(origin: str) -> None:
    with pytest.raises(SettingsError, match="LAKEGATE__ALLOW_ORIGIN"):
        settings.load({"LAKEGATE__ALLOW_ORIGIN": f"https://b.example:8443,{origin}"})


def test_every_setting_has_a_description() -> None:
    assert [row.variable for row in settings.rows() if not row.description] == []


def test_the_settings_page_is_current() -> None:
    page = (_ROOT / "docs" / "settings.md").read_text()
    assert page == settings.table(), "run `lakegate settings-table > docs/settings.md`"


def test_only_the_settings_module_reads_the_environment() -> None:
    readers = []
    for path in (*_ROOT.glob("gateway/**/*.py"), *_ROOT.glob("lakegate/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = {"environ", "getenv", "environb", "putenv"}
            if isinstance(node, ast.Attribute) and node.attr in names and ast.unparse(node.value) == "os":
                readers.append(str(path.relative_to(_ROOT)))
    assert set(readers) <= {"gateway/settings/process_environment.py"}


_ENTRA = {
    "LAKEGATE__OPENID_PROVIDERS__CORP_AD__URI": "https://login.example/tenant/v2.0",
    "LAKEGATE__OPENID_PROVIDERS__CORP_AD__AUDIENCE": "api://lakegate, lakegate",
    "LAKEGATE__OPENID_PROVIDERS__CORP_AD__SUBJECT_CLAIMS": "oid",
    "LAKEGATE__OPENID_PROVIDERS__CORP_AD__ROLES_CLAIM": "groups",
    "LAKEGATE__OPENID_PROVIDERS__CORP_AD__KEYS_MAX_AGE": "2h",
}


def test_several_providers_are_configured_by_id() -> None:
    read = settings.load(_SERVING | _ENTRA)
    read.require_serving()
    providers = read.identity_providers()
    assert list(providers) == ["oidc", "corp-ad"]
    found = providers["corp-ad"]
    assert (found.audience, found.subject_claims) == (("api://lakegate", "lakegate"), ("oid",))
    assert (found.roles_claim, found.keys_max_age, found.keys_refresh) == ("groups", 7200.0, 300.0)


def test_policy_claims_are_paths_of_one_provider_and_at_most_sixteen() -> None:
    own = {"LAKEGATE__OPENID_PROVIDERS__CORP_AD__POLICY_CLAIMS": "region, org.cost_center,https://lake.example/team"}
    providers = settings.load(_SERVING | _ENTRA | own).identity_providers()
    assert providers["corp-ad"].policy_claims == ("region", "org.cost_center", "https://lake.example/team")
    assert providers["oidc"].policy_claims == ()
    first = settings.load(_SERVING | _ENTRA | {"LAKEGATE__OPENID_POLICY_CLAIMS": "team"}).identity_providers()
    assert (first["oidc"].policy_claims, first["corp-ad"].policy_claims) == (("team",), ())
    many = {"LAKEGATE__OPENID_POLICY_CLAIMS": ",".join(f"claim{number}" for number in range(17))}
    with pytest.raises(SettingsError, match="POLICY_CLAIMS"):
        settings.load(_SERVING | many)


def test_the_unnamed_provider_is_optional_beside_named_ones() -> None:
    rest = {name: value for name, value in _SERVING.items() if "OPENID" not in name}
    read = settings.load(rest | _ENTRA)
    read.require_serving()
    assert list(read.identity_providers()) == ["corp-ad"]


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("OPENID_PROVIDERS__CORP-AD__SCOPE", "read", "contains the same id in another spelling"),
        ("OPENID_PROVIDERS__OTHER__SCOPE", "read", "OPENID_PROVIDERS__OTHER__URI must be set"),
        ("OPENID_PROVIDERS__CORP_AD__AUDIENC", "read", "did you mean"),
        ("OPENID_PROVIDERS__CORP_AD", "x", "is not a setting"),
        ("OPENID_PROVIDERS__B~D__URI", "x", "is not a setting"),
        ("OPENID_PROVIDERS__CORP_AD__AUDIENCE", ",", "AUDIENCE: "),
    ],
)
def test_a_misspelt_provider_setting_is_refused(variable: str, text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        settings.load(_SERVING | _ENTRA | {f"LAKEGATE__{variable}": text})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"CORP_AD__URI": "https://issuer.example", "CORP_AD__AUDIENCE": "x,lakegate"}, "same issuer .* same audience"),
        ({"CORP_AD__ADDITIONAL_ISSUERS": "https://issuer.example"}, "same issuer .* same audience"),
        (
            {"CORP_AD__PROJECT_AUDIENCES": "lakegate=p"},
            "PROJECT_AUDIENCES: lakegate is also an audience for all projects",
        ),
        ({"CORP_AD__KEYS_REFRESH": "3h"}, "KEYS_REFRESH must not be longer"),
        ({"OIDC__URI": "https://a.example", "OIDC__AUDIENCE": "a"}, "OIDC: this id is reserved"),
        ({"KUBERNETES__URI": "https://a.example", "KUBERNETES__AUDIENCE": "a"}, "KUBERNETES: this id is reserved"),
    ],
)
def test_serving_is_refused_with_indistinguishable_providers(changes: dict[str, str], message: str) -> None:
    given = {f"LAKEGATE__OPENID_PROVIDERS__{name}": value for name, value in changes.items()}
    with pytest.raises(SettingsError, match=message):
        settings.load(_SERVING | _ENTRA | given).require_serving()


_PROOFS = {"CERTIFICATE_HEADER": "Client-Cert", "PROXY_NETWORKS": "10.1.2.0/24,fd00::/64"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"CERTIFICATE_HEADER": "Client-Cert"}, "PROXY_NETWORKS must be set"),
        (_PROOFS | {"PROXY_NETWORKS": "10.1.2.3/24"}, "PROXY_NETWORKS: .* host bits set"),
        (_PROOFS | {"PROXY_NETWORKS": "10.1.2.0/24,::/0"}, "contains all addresses"),
        ({"REQUIRED_FOR": "oidc~trino"}, "REQUIRED_FOR needs .*CERTIFICATE_HEADER"),
        (_PROOFS | {"REQUIRED_FOR": "trino"}, "'trino' is not a user of an OpenID provider"),
        (_PROOFS | {"REQUIRED_FOR": "kubernetes~*"}, "'kubernetes~.*' is not a user of an OpenID provider"),
    ],
)
def test_serving_is_refused_with_unsafe_settings_of_bound_tokens(given: dict[str, str], message: str) -> None:
    variables = {f"LAKEGATE__BOUND_TOKENS__{name}": value for name, value in given.items()}
    with pytest.raises(SettingsError, match=message):
        settings.load(_SERVING | variables).require_serving()


def test_bound_tokens_are_configured_with_a_header_and_networks() -> None:
    given = _PROOFS | {"CERTIFICATE_FORMAT": "pem", "REQUIRED_FOR": "oidc~trino,oidc~*"}
    read = settings.load(_SERVING | {f"LAKEGATE__BOUND_TOKENS__{name}": value for name, value in given.items()})
    read.require_serving()
    assert [str(network) for network in read.bound_tokens.networks()] == ["10.1.2.0/24", "fd00::/64"]


@pytest.mark.parametrize("second", ["TRINO", "PRESTO"])
def test_an_owner_property_shared_by_several_providers_is_refused(second: str) -> None:
    engines = {
        "LAKEGATE__TRUSTED_ENGINES__TRINO__IDENTITIES__OIDC__SUBJECTS": "trino",
        f"LAKEGATE__TRUSTED_ENGINES__{second}__IDENTITIES__CORP_AD__SUBJECTS": "trino",
    }
    with pytest.raises(SettingsError, match="trusted for engines of several providers .* and oidc"):
        settings.load(_SERVING | engines).require_serving()
    apart = {f"LAKEGATE__TRUSTED_ENGINES__{second}__OWNER_PROPERTY": "presto.run-as-owner"}
    if second == "PRESTO":
        settings.load(_SERVING | engines | apart).require_serving()


@pytest.mark.parametrize("value", ["trino", ""])
def test_trusting_an_engine_by_audience_is_refused_with_a_remedy(value: str) -> None:
    name = "LAKEGATE__TRUSTED_ENGINES__TRINO__IDENTITIES__OIDC__AUDIENCES"
    with pytest.raises(SettingsError, match=f"^{name} was removed: .*SUBJECTS"):
        settings.load(_SERVING | {name: value})
    with pytest.raises(SettingsError, match="is not a setting"):
        settings.load(_SERVING | {name.replace("AUDIENCES", "AUDIENCE"): "trino"})


def test_setting_with_a_fixed_value_is_refused_without_the_hint_of_a_similar_name() -> None:
    """The nearest name of `TOKENS` is a time, in which its number would be wrong."""
    with pytest.raises(SettingsError, match="^LAKEGATE__MEMORY__TOKENS was removed: .*Remove the variable") as refused:
        settings.load(_SERVING | {"LAKEGATE__MEMORY__TOKENS": "10000"})
    assert "did you mean" not in str(refused.value)


def test_two_providers_of_one_issuer_are_distinguished_by_audience() -> None:
    same = {"LAKEGATE__OPENID_PROVIDERS__CORP_AD__URI": "https://issuer.example"}
    apart = {"LAKEGATE__OPENID_PROVIDERS__CORP_AD__AUDIENCE": "robots"}
    settings.load(_SERVING | _ENTRA | same | apart).require_serving()


_CLUSTER = {
    "LAKEGATE__KUBERNETES_CLUSTERS__LAB__URL": "https://10.0.0.1:6443",
    "LAKEGATE__KUBERNETES_CLUSTERS__LAB__AUDIENCE": "lakegate",
}


def test_clusters_are_configured_with_providers_or_alone() -> None:
    read = settings.load(_SERVING | _CLUSTER | {"LAKEGATE__KUBERNETES_CLUSTERS__LAB__SUBJECT_SOURCE": "username"})
    read.require_serving()
    assert [(id, each.subject_source) for id, each in read.clusters().items()] == [("lab", "username")]
    alone = {name: value for name, value in _SERVING.items() if "OPENID" not in name} | _CLUSTER
    settings.load(alone).require_serving()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"KUBERNETES_CLUSTERS__KUBERNETES__URL": "https://a", "KUBERNETES_CLUSTERS__KUBERNETES__AUDIENCE": "a"},
            "reserved",
        ),
        (
            {"OPENID_PROVIDERS__LAB__URI": "https://a.example", "OPENID_PROVIDERS__LAB__AUDIENCE": "a"},
            "has the same id",
        ),
        ({"ENABLE_KUBERNETES_AUTHENTICATION": "true"}, "works only in a pod"),
    ],
)
def test_serving_is_refused_with_invalid_clusters(
    changes: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    given = {f"LAKEGATE__{name}": value for name, value in changes.items()}
    with pytest.raises(SettingsError, match=message):
        settings.load(_SERVING | _CLUSTER | given).require_serving()


def test_the_surrounding_cluster_is_detected_and_needs_an_audience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    enabled = _SERVING | {"LAKEGATE__ENABLE_KUBERNETES_AUTHENTICATION": "true"}
    with pytest.raises(SettingsError, match="KUBERNETES_AUTHENTICATION_AUDIENCE must be set"):
        settings.load(enabled).require_serving()
    found = settings.load(enabled | {"LAKEGATE__KUBERNETES_AUTHENTICATION_AUDIENCE": "lake"}).clusters()["kubernetes"]
    assert (found.url, found.subject_source) == ("https://[fd00::1]:443", "uid")
    assert found.token_file == "/var/run/secrets/kubernetes.io/serviceaccount/token"
