# SPDX-License-Identifier: Apache-2.0
"""Find or create OpenFGA's store and its model: `push_model` for migrations, `find_model` and `read_model` for serving.

OpenFGA neither enforces unique store names nor compares models, so this module does both.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import openfga_sdk
from openfga_sdk.credentials import CredentialConfiguration, Credentials
from openfga_sdk.exceptions import NotFoundException, OpenApiException

from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.fga.compiled import compiled_model, missing_from, same_model
from gateway.fga.wire import require_accepted_key, unreachable

# The SDK has a `py.typed` marker, but most of its functions have no type annotations.
_sdk: Any = openfga_sdk

_TIMEOUT_MS = 10_000
_PAGE_SIZE = 100
#: After this time, two concurrent migrations that both created a store see each other's store.
_SETTLE_SECONDS = 0.5
_TRIES_WITH_TWO_STORES = 5


@dataclass(frozen=True, slots=True)
class StoreAndModel:
    """The ids of the store that holds the tuples and of the model that checks use. Both are ULIDs."""

    store_id: str
    model_id: str


class ModelNotReady(Exception):
    """The store or its model is missing, ambiguous or too old for this version. The message names the next step."""


async def push_model(
    endpoint: str,
    api_key: str | None,
    store_name: str,
    *,
    compiled: Mapping[str, Any] | None = None,
    ca_bundle: str | None = None,
) -> StoreAndModel:
    """Create the store `store_name` and write a compiled model, unless the store exists and its newest model is equal.

    `compiled` is the model in OpenFGA's JSON form, None for that of the package.

    It is idempotent and safe to run concurrently: of two stores created at the same time the older remains, and two
    concurrent writers leave two equal models. `ca_bundle` is a file of certificates to trust instead of the system's.
    Raises ModelNotReady if several stores have the name, and DecisionEngineUnavailable if OpenFGA fails or cannot be
    reached.
    """
    async with _connected(endpoint, api_key, ca_bundle) as client:
        store_id = await _store_named(client, store_name) or await _create_store(client, store_name)
        client.set_store_id(store_id)
        compiled = compiled or compiled_model()
        model_id, model = await _newest_model(client)
        if model_id is None or not same_model(model, compiled):
            written = await client.write_authorization_model(
                _sdk.WriteAuthorizationModelRequest(
                    schema_version=compiled["schema_version"],
                    type_definitions=compiled["type_definitions"],
                    conditions=compiled["conditions"],
                )
            )
            model_id = str(written.authorization_model_id)
        return StoreAndModel(store_id, model_id)


async def find_model(
    endpoint: str,
    api_key: str | None,
    store_name: str,
    *,
    demanded: Mapping[str, Set[str]],
    model_id: str | None = None,
    ca_bundle: str | None = None,
) -> StoreAndModel:
    """Return the ids of the store `store_name` and of its model `model_id` (None: its newest model).

    `demanded` are the required relations, by type; `ca_bundle` is as in `push_model`. Raises ModelNotReady if the
    store, the model or a demanded relation is missing: otherwise each request that checks the relation would fail.
    Raises DecisionEngineUnavailable if OpenFGA fails or cannot be reached.
    """
    async with _connected(endpoint, api_key, ca_bundle) as client:
        store_id = await _store_named(client, store_name)
        if store_id is None:
            raise ModelNotReady(f"OpenFGA has no store named {store_name!r}; run `lakegate migrate` first.")
        client.set_store_id(store_id)
        if model_id is None:
            model_id, model = await _newest_model(client)
        else:
            model = await _model(client, model_id)
    if model_id is None:
        raise ModelNotReady(f"The store {store_name!r} of OpenFGA has no model; run `lakegate migrate` first.")
    require_relations(model_id, model, demanded)
    return StoreAndModel(store_id, model_id)


async def read_model(
    endpoint: str, api_key: str | None, store_id: str, model_id: str, *, ca_bundle: str | None = None
) -> dict[str, Any]:
    """Return a model of the store in JSON form. `ca_bundle` as in `push_model`.

    Raises ModelNotReady if the store has no such model, and DecisionEngineUnavailable if OpenFGA fails or cannot be
    reached.
    """
    async with _connected(endpoint, api_key, ca_bundle) as client:
        client.set_store_id(store_id)
        return await _model(client, model_id)


def require_relations(model_id: str, model: Mapping[str, Any], demanded: Mapping[str, Set[str]]) -> None:
    """Raise ModelNotReady unless the model has every relation of `demanded` (relations by type)."""
    missing = missing_from(model, demanded)
    if missing:
        raise ModelNotReady(
            f"The model {model_id} lacks {', '.join(missing)}, which this version of the gateway requires; run "
            "`lakegate migrate` of this version first."
        )


@asynccontextmanager
async def _connected(endpoint: str, api_key: str | None, ca_bundle: str | None) -> AsyncIterator[Any]:
    """Open a client of the SDK for the block. Its errors become DecisionEngineUnavailable without the API key."""
    credentials = None
    if api_key:
        credentials = Credentials(method="api_token", configuration=CredentialConfiguration(api_token=api_key))
    configuration = _sdk.ClientConfiguration(
        api_url=endpoint, credentials=credentials, timeout_millisec=_TIMEOUT_MS, ssl_ca_cert=ca_bundle
    )
    try:
        async with _sdk.OpenFgaClient(configuration) as client:
            yield client
    except OpenApiException as error:
        status = getattr(error, "status", None)
        require_accepted_key(status)
        raise DecisionEngineUnavailable(
            f"OpenFGA rejected the request with status {status} ({type(error).__name__})."
        ) from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise unreachable(endpoint, type(error)) from None


async def _store_named(client: Any, name: str) -> str | None:
    """Return the id of the only store with this name, None if there is none. Raises ModelNotReady for several stores.

    Several stores may be temporary: a concurrent `_create_store` may be about to delete its duplicate, so wait first.
    """
    for _ in range(_TRIES_WITH_TWO_STORES):
        found = await _stores_named(client, name)
        if len(found) < 2:
            return found[0][1] if found else None
        await asyncio.sleep(_SETTLE_SECONDS)
    raise ModelNotReady(
        f"OpenFGA has {len(found)} stores named {name!r} ({', '.join(store_id for _, store_id in found)}). The "
        "gateway cannot determine which of them contains the grants. Delete the stores that are not in use."
    )


async def _stores_named(client: Any, name: str) -> list[tuple[Any, str]]:
    """Return (time of creation, id) of every store with exactly this name, oldest first."""
    found: list[tuple[Any, str]] = []
    token: str | None = None
    while True:
        options: dict[str, Any] = {"page_size": _PAGE_SIZE, "name": name}
        if token:
            options["continuation_token"] = token
        page = await client.list_stores(options)
        found += [(store.created_at, str(store.id)) for store in page.stores if store.name == name]
        token = page.continuation_token
        if not token:
            return sorted(found)


async def _create_store(client: Any, name: str) -> str:
    """Create the store and return its id. If another process created one concurrently, keep the older of the two."""
    created = await client.create_store(_sdk.CreateStoreRequest(name=name))
    await asyncio.sleep(_SETTLE_SECONDS)
    oldest = (await _stores_named(client, name))[0][1]
    if oldest != created.id:
        # The store created here is empty, and no other process uses it: deleting it loses nothing.
        client.set_store_id(created.id)
        await client.delete_store()
    return oldest


async def _newest_model(client: Any) -> tuple[str | None, dict[str, Any]]:
    """Return (id, JSON form) of the newest model in the client's store, or (None, {}) if it has none."""
    newest = (await client.read_latest_authorization_model()).authorization_model
    if newest is None:
        return None, {}
    model: dict[str, Any] = client._api_client.sanitize_for_serialization(newest)
    return str(newest.id), model


async def _model(client: Any, model_id: str) -> dict[str, Any]:
    """Return the model in JSON form. Raises ModelNotReady if the client's store does not have it."""
    client.set_authorization_model_id(model_id)
    try:
        found = (await client.read_authorization_model()).authorization_model
    except NotFoundException:
        raise ModelNotReady(
            f"The store of OpenFGA lacks the model {model_id}, which PostgreSQL records as active. One of the two "
            "may have been restored without the other. Run `lakegate model push` and `lakegate model migrate`."
        ) from None
    model: dict[str, Any] = client._api_client.sanitize_for_serialization(found)
    return model
