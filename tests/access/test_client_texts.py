# SPDX-License-Identifier: Apache-2.0
"""Texts of errors that clients match, or that guides and tests of clients quote: they begin as those of the reference.

The golden file lists every message that the code can send, so no place that raises one of these errors is missed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "goldens" / "error-messages.md"

#: (type, beginning of each of its messages) of Lakekeeper.
EACH_MESSAGE = [
    ("NamespaceDepthExceeded", "Namespace exceeds maximum depth of {}"),
    ("NamespacePartContainsDot", "Namespace parts cannot contain '.'"),
    ("NamespacePartEmpty", "Namespace parts cannot be empty"),
    ("ImmutablePropertyModification", "Cannot modify immutable property '{}'"),
    ("ImmutablePropertyRemoval", "Cannot remove immutable property '{}'"),
    ("AssignUuidNotAllowed", "Cannot assign a new UUID"),
    ("SetLocationNotAllowed", "Cannot change table location"),
    ("LocationCannotBeUpdated", "Namespace property `location` cannot be updated."),
    ("LocationCannotBeRemoved", "Namespace property `location` cannot be removed."),
    ("UnexpectedFilesInLocation", "Unexpected files in location, tabular locations have to be empty"),
    ("ProtectedTabularDeletionWithoutForce", "Cannot delete protected tabular {} without force flag"),
]

#: (type, beginning of one of its messages) of the Java library's compatibility kit and of PyIceberg.
ONE_MESSAGE = [
    ("NoSuchNamespaceException", "Namespace does not exist: {}"),
    ("NoSuchViewException", "View does not exist: {}"),
    ("AlreadyExistsException", "Namespace already exists: {}"),
    ("AlreadyExistsException", "Table already exists: {}"),
    ("NamespaceNotEmptyException", "Namespace {} is not empty"),
]


def messages(type: str) -> list[str]:
    """Return the messages of an error type that the code can send, with `{}` for their values."""
    rows = [line.strip("| ").split(" | ", 1) for line in GOLDEN.read_text().splitlines() if line.startswith("| ")]
    return [row[1] for row in rows if row[0] == type]


@pytest.mark.parametrize(("type", "text"), EACH_MESSAGE)
def test_every_message_of_the_type_begins_as_in_the_reference(type: str, text: str) -> None:
    found = messages(type)
    assert found
    assert [message for message in found if not message.startswith(text)] == []


@pytest.mark.parametrize(("type", "text"), ONE_MESSAGE)
def test_a_message_begins_as_in_the_compatibility_kit(type: str, text: str) -> None:
    assert any(message.startswith(text) for message in messages(type)), messages(type)
