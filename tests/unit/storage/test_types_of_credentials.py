# SPDX-License-Identifier: Apache-2.0
"""A request whose storage type is no text is refused as one with an unknown type."""

from __future__ import annotations

import pytest

from gateway.scope.errors import InvalidStorageCredential, InvalidStorageProfile
from gateway.scope.profile import STRICTEST
from gateway.storage.registry import decode_credential, decode_profile


@pytest.mark.parametrize("kind", ["[]", "{}", "null", "1", '"unknown"'])
def test_type_that_is_no_known_text_is_refused(kind: str) -> None:
    request = f'{{"type": {kind}}}'.encode()
    with pytest.raises(InvalidStorageCredential):
        decode_credential(request, rules=STRICTEST)
    with pytest.raises(InvalidStorageProfile):
        decode_profile(request, rules=STRICTEST)
