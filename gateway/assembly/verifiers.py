# SPDX-License-Identifier: Apache-2.0
"""Open the verifiers in the settings, which approve or reject changes before they are made.

A package provides a verifier as an entry point of the group `lakegate.verifiers`. Its name is the value of the setting
KIND. The entry point refers to a function `open(name, options)` that returns a `gateway.verification.port.Verifier`
with this name.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gateway.assembly.extensions import ExtensionGroup, NoSuchExtension, find_extension
from gateway.identity.discovery import check_endpoint
from gateway.settings import Settings, SettingsError
from gateway.settings.env import PREFIX
from gateway.settings.verifiers import BUILT_IN, VerifierSettings
from gateway.telemetry.health import HealthMonitor
from gateway.telemetry.logs import get_logger
from gateway.tls import Trust
from gateway.verification.builtin import compatibility, partition_evolution, protected_columns, required_properties
from gateway.verification.builtin.rule import Rule
from gateway.verification.contracts import ContractDirectory, ContractInvalid, ContractVerifier
from gateway.verification.opa_rule import OpaRule
from gateway.verification.panel import Asked, Panel, Seat
from gateway.verification.port import ChangeKind, Verifier
from gateway.verification.webhook import Webhook, signing_key

if TYPE_CHECKING:
    # The metrics read a variable when they are imported. `lakegate serve` opens verifiers before it sets this variable.
    from gateway.telemetry.metrics import Metrics

log = get_logger("gateway.verification")


def open_verifiers(
    settings: Settings, trust: Trust, metrics: Metrics | None, health: HealthMonitor, stack: AsyncExitStack
) -> Panel | None:
    """Open all verifiers without connecting, and report their status in `/health`. Closing `stack` closes them. Return
    None if there are none.

    A verifier that fails does not make the gateway unhealthy, because reads need no verifier. Raises SettingsError and
    NoSuchExtension.
    """
    if not settings.verifiers:
        return None
    seats = [_seat(name, each, settings, trust) for name, each in sorted(settings.verifiers.items())]
    panel = Panel(seats, observe=partial(_observe, metrics))
    stack.push_async_callback(panel.close)
    for name in panel.names:
        health.register("verifiers", name, partial(panel.check, name), required=False)
    return panel


def _seat(name: str, each: VerifierSettings, settings: Settings, trust: Trust) -> Seat:
    """Return a verifier of the settings together with its limits. Raises SettingsError and NoSuchExtension."""
    try:
        verifier = _opened(name, each, settings, trust.context)
    except (ValueError, ContractInvalid, OSError) as error:
        raise SettingsError(f"{PREFIX}VERIFIERS__{name.upper().replace('-', '_')}: {error}") from None
    contracts = verifier if isinstance(verifier, ContractVerifier) else None
    stated = msgspec.json.encode(each.public()).decode()
    return Seat(
        verifier=verifier,
        timeout=each.timeout,
        warehouses=frozenset(each.warehouses),
        questions=each.questions,
        kinds=frozenset(ChangeKind(kind) for kind in each.changes),
        object_types=frozenset(each.objects),
        unaffected=verifier.unaffected if isinstance(verifier, Rule) else frozenset(),
        configuration=(lambda: stated) if contracts is None else (lambda: stated + contracts.configuration()),
        check=None if contracts is None else contracts.check,
    )


def _opened(name: str, each: VerifierSettings, settings: Settings, tls: ssl.SSLContext) -> Verifier:
    rule = partial(Rule, name, violation=each.on_violation)
    match each.kind:
        case "schema":
            return rule(compatibility.CONCERN, compatibility.incompatible)
        case "properties":
            required = required_properties.parse_requirements(each.required_properties)
            judge = partial(required_properties.missing_properties, requirements=required)
            return rule(required_properties.CONCERN, judge)
        case "partitions":
            transforms = partition_evolution.parse_transforms(each.partition_transforms)
            limits: Mapping[str, Any] = {"mode": each.partition_evolution, "transforms": transforms}
            return rule(partition_evolution.CONCERN, partial(partition_evolution.forbidden_evolution, **limits))
        case "columns":
            protected = protected_columns.parse_columns(each.protected_columns)
            return rule(protected_columns.CONCERN, partial(protected_columns.changed_columns, protected=protected))
        case "contract":
            directory = ContractDirectory(Path(each.contracts_dir or ""))
            return ContractVerifier(name, directory, violation=each.on_violation)
        case "webhook" | "opa":
            return _remote(name, each, settings, tls)
    return open_provided_verifier(each.kind, name, each.options)


def _remote(name: str, each: VerifierSettings, settings: Settings, tls: ssl.SSLContext) -> Verifier:
    if each.kind == "webhook":
        url = each.url or ""
        check_endpoint(url, "URL")
        key = signing_key(each.secret.reveal() if each.secret else "")
        return Webhook(
            name, url, key, timeout=each.timeout, connections=each.questions, documents=each.documents, tls=tls
        )
    return OpaRule(
        name,
        settings.opa.url,
        each.rule,
        token=settings.opa.token.reveal() if settings.opa.token else None,
        timeout=each.timeout,
        connections=each.questions,
        documents=each.documents,
        tls=tls,
    )


def open_provided_verifier(kind: str, name: str, options: Sequence[str]) -> Verifier:
    """Return the verifier `name` of an installed package, with `options` of the form `key=value`.

    Raises NoSuchExtension, and ValueError for invalid options.
    """
    given: dict[str, str] = {}
    for entry in options:
        key, equals, value = entry.partition("=")
        if not equals or key in given:
            raise ValueError(f"OPTIONS must contain each key once as key=value, not {key!r}")
        given[key] = value
    opener: Callable[..., Any] = find_extension(ExtensionGroup.VERIFIERS, kind, built_in=BUILT_IN)
    try:
        verifier = opener(name, given)
    except Exception as error:  # a package can raise any error, and the operator needs the package's name
        raise NoSuchExtension(f"The verifier {kind!r} cannot be opened: {type(error).__name__}: {error}") from error
    parts = all(callable(getattr(verifier, part, None)) for part in ("concerns", "verify", "close"))
    if not parts or getattr(verifier, "name", None) != name:
        raise NoSuchExtension(f"The extension {kind!r} returned no verifier with the name {name!r}.")
    opened: Verifier = verifier
    return opened


def _observe(metrics: Metrics | None, asked: Asked) -> None:
    """Count a query to a verifier, and log it if it failed."""
    if metrics is not None:
        metrics.verifier_asked(asked.verifier, asked.outcome, asked.seconds)
    if asked.failure is not None:
        log.warning("verifier.failed", verifier=asked.verifier, reason=asked.failure, seconds=round(asked.seconds, 3))
