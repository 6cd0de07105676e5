# SPDX-License-Identifier: Apache-2.0
"""Settings of event sinks: each fault is named with its variable."""

from __future__ import annotations

import pytest

from gateway.events.kafka import FIXED_OPTIONS
from gateway.settings import SettingsError, load
from gateway.settings.verifiers import verifier_problems

_NATS = {"KIND": "nats", "URL": "nats://bus:4222", "SUBJECT": "lakegate.events"}
_KAFKA = {"KIND": "kafka", "BOOTSTRAP": "bus:9092", "TOPIC": "events"}
_HOOK = {"KIND": "webhook", "URL": "https://hook.example/events", "SECRET": "0123456789abcdef"}


def _checked(values: dict[str, str]) -> None:
    variables = {f"LAKEGATE__EVENTS__SINKS__MAIN_BUS__{name}": value for name, value in values.items()}
    load(variables).events.require_usable()


@pytest.mark.parametrize("values", [_NATS, _KAFKA, _HOOK, {"KIND": "log"}, {"KIND": "of-a-package"}])
def test_complete_sink_is_accepted(values: dict[str, str]) -> None:
    _checked(values)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({**_NATS, "SUBJECT": ""}, "SUBJECT must be set"),
        ({**_NATS, "URL": "http://bus"}, "URL must begin with nats://"),
        ({"KIND": "kafka"}, "BOOTSTRAP must be set"),
        ({**_KAFKA, "OPTIONS": "linger.ms"}, "name=value"),
        ({**_KAFKA, "OPTIONS": "sasl.password=x"}, "set PASSWORD"),
        ({**_KAFKA, "OPTIONS": "ssl.key.password=hunter22"}, "OPTIONS: .* set SECRET_OPTIONS"),
        ({**_KAFKA, "OPTIONS": "ssl.keystore.password=hunter22"}, "set SECRET_OPTIONS"),
        ({**_KAFKA, "OPTIONS": "ssl.key.pem=hunter22"}, "set SECRET_OPTIONS"),
        ({**_KAFKA, "OPTIONS": "sasl.oauthbearer.client.secret=hunter22"}, "set SECRET_OPTIONS"),
        ({**_KAFKA, "OPTIONS": "sasl.oauthbearer.assertion.private.key.passphrase=hunter22"}, "set SECRET_OPTIONS"),
        ({**_KAFKA, "OPTIONS": "sasl.oauthbearer.assertion.private.key.pem=hunter22"}, "set SECRET_OPTIONS"),
        ({**_KAFKA, "OPTIONS": 'sasl.jaas.config=x password="hunter22"'}, "set SECRET_OPTIONS"),
        ({**_KAFKA, "OPTIONS": "sasl.oauthbearer.token.endpoint.url=https://u:hunter22@h/"}, "set SECRET_OPTIONS"),
        ({**_KAFKA, "OPTIONS": "ssl.certificate.pem=-----BEGIN PRIVATE KEY-----hunter22"}, "set SECRET_OPTIONS"),
        ({**_KAFKA, "SECRET_OPTIONS": "ssl.key.password=hunter22"}, "SECRET_OPTIONS must be a JSON object"),
        ({**_KAFKA, "SECRET_OPTIONS": '{"ssl.key.password": ["hunter22"]}'}, "SECRET_OPTIONS must be a JSON object"),
        ({**_KAFKA, "SECRET_OPTIONS": '{"acks": "hunter22"}'}, "SECRET_OPTIONS: the option acks cannot be set"),
        ({**_KAFKA, "SECRET_OPTIONS": '{"sasl.password": "hunter22"}'}, "set PASSWORD"),
        ({**_NATS, "URL": "nats://lakegate:hunter22@bus:4222"}, "URL must not contain a user.*set USER and PASSWORD"),
        ({**_NATS, "URL": "tls://hunter22@bus:4222"}, "or TOKEN"),
        ({**_HOOK, "SECRET": "short"}, "at least 16 bytes"),
        ({**_HOOK, "URL": "http://hook.example/"}, "must begin with https://"),
        ({**_HOOK, "URL": "https://169.254.169.254/latest"}, "metadata"),
        ({**_HOOK, "URL": "https://metadata.google.internal/"}, "metadata"),
        ({**_HOOK, "URL": "https://user:pass@hook.example/"}, "without a user"),
        ({**_HOOK, "URL": "ftp://hook.example/"}, "must be https://"),
    ],
)
def test_faulty_sink_is_refused_with_its_variable(values: dict[str, str], fault: str) -> None:
    with pytest.raises(SettingsError, match=fault) as refused:
        _checked(values)
    assert "LAKEGATE__EVENTS__SINKS__MAIN_BUS__" in str(refused.value)
    assert "hunter22" not in str(refused.value)


@pytest.mark.parametrize("option", sorted(FIXED_OPTIONS))
def test_option_of_kafka_that_keeps_events_cannot_be_set(option: str) -> None:
    """The settings and the sink have the same list."""
    with pytest.raises(SettingsError, match=option):
        _checked({**_KAFKA, "OPTIONS": f"{option}=0"})


@pytest.mark.parametrize(
    "option",
    [
        "ssl.ca.pem", "ssl.certificate.pem", "ssl.key.location", "ssl.keystore.location",
        "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.client.id",
    ],
)  # fmt: skip
def test_option_of_kafka_without_a_secret_can_be_set(option: str) -> None:
    _checked({**_KAFKA, "OPTIONS": f"{option}=x"})


def test_secret_option_reaches_kafka_and_no_text_of_the_settings() -> None:
    """Without it, a cluster with OAuth cannot be used: its secret is refused in the other options."""
    secret = '{"sasl.oauthbearer.client.secret": "hunter22,=x"}'
    variables = {**_KAFKA, "OPTIONS": "sasl.mechanism=OAUTHBEARER", "SECRET_OPTIONS": secret}
    settings = load({f"LAKEGATE__EVENTS__SINKS__BUS__{name}": value for name, value in variables.items()})
    settings.events.require_usable()
    assert settings.events.sinks["bus"].kafka_options() == {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.client.secret": "hunter22,=x",
    }
    assert "hunter22" not in repr(settings)


@pytest.mark.threat("LG-DEC-35")
@pytest.mark.parametrize(
    "url",
    [
        "https://169.254.169.254/latest", "https://[fd00:ec2::254]/latest", "https://metadata.google.internal/",
        "https://user:hunter22@hook.example/",
    ],
)  # fmt: skip
@pytest.mark.parametrize("section", ["EVENTS__SINKS", "VERIFIERS"])
def test_metadata_service_is_no_address_of_a_sink_or_a_verifier(section: str, url: str) -> None:
    """Such a service acts on requests, and its answers would appear in the reasons of a rejected change."""
    values = {"KIND": "webhook", "URL": url, "SECRET": "whsec_" + "QUJD" * 10}
    read = load({f"LAKEGATE__{section}__HOOK__{name}": value for name, value in values.items()})
    problems = verifier_problems(read.verifiers, 60)
    try:
        read.events.require_usable()
    except SettingsError as error:
        problems.append(str(error))
    (problem,) = problems
    assert problem.startswith(f"LAKEGATE__{section}__HOOK__URL must be https://")
    assert "hunter22" not in problem


def test_webhook_without_tls_is_accepted_on_loopback_only() -> None:
    _checked({**_HOOK, "URL": "http://127.0.0.1:8080/events"})


def test_password_is_an_option_of_kafka_and_in_no_text_of_the_settings() -> None:
    variables = {**_KAFKA, "USER": "lakegate", "PASSWORD": "hunter22"}
    settings = load({f"LAKEGATE__EVENTS__SINKS__BUS__{name}": value for name, value in variables.items()})
    assert settings.events.sinks["bus"].kafka_options() == {"sasl.username": "lakegate", "sasl.password": "hunter22"}
    assert "hunter22" not in repr(settings)
