# SPDX-License-Identifier: Apache-2.0
"""Build the mapping of AuthZEN requests from the settings."""

from __future__ import annotations

from gateway.access.authzen_mapping import MAPPED_TYPES, AuthZenMapping, InvalidMapping, mapped_type, own_type
from gateway.access.tuples import PrincipalType
from gateway.settings import PREFIX, SettingsError
from gateway.settings.authzen import AuthZen


def authzen_mapping(settings: AuthZen) -> AuthZenMapping:
    """Return the mapping. An entry of the settings replaces the type of the gateway with the same name.

    Raises SettingsError for an entry that names an unknown object type, action or place.
    """
    types = {type.value: own_type(type) for type in MAPPED_TYPES} if settings.own_names else {}
    subjects = {type.value: type for type in PrincipalType} if settings.own_names else {}
    try:
        for id, entry in settings.types.items():
            name = entry.name or id
            types[name] = mapped_type(name, entry.type, entry.actions, entry.within)
        for each in settings.subjects:
            name, _, type = each.partition("=")
            subjects[name] = PrincipalType(type)
    except InvalidMapping as invalid:
        raise SettingsError(f"{PREFIX}AUTHZEN__TYPES: {invalid}") from None
    return AuthZenMapping(types, subjects, settings.provider)
