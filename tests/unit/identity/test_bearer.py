# SPDX-License-Identifier: Apache-2.0
"""The accepted forms of the Authorization header (LG-AUT-12)."""

from collections.abc import Sequence

import pytest

from gateway.identity.bearer import bearer_token
from gateway.identity.errors import AuthenticationFailed, MissingAuthorizationHeader


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
def test_the_authorization_scheme_is_case_insensitive(scheme: str) -> None:
    assert bearer_token([f"{scheme} abc.def-_~+/.x=="]) == "abc.def-_~+/.x=="
    assert bearer_token([f"{scheme}  a.b.c".encode()]) == "a.b.c"


def test_a_missing_authorization_header_has_its_own_error() -> None:
    with pytest.raises(MissingAuthorizationHeader) as caught:
        bearer_token([])
    assert (caught.value.type, caught.value.code) == ("MissingAuthorizationHeader", 401)
    assert caught.value.challenge == "Bearer"


@pytest.mark.threat("LG-AUT-12")
@pytest.mark.parametrize(
    "values",
    [
        ["Bearer a.b.c", "Bearer a.b.c"],
        ["Bearer a.b.c", "Bearer other"],
        ["Bearer a.b.c", ""],
        ["Bearer a.b.c, Bearer d.e.f"],
        ["Bearer a.b.c,d"],
        ["Bearer"],
        ["Bearer "],
        [""],
        [" Bearer a.b.c"],
        ["Bearer a.b.c "],
        ["Bearer\ta.b.c"],
        ["Bearer a b"],
        ["Bearer a.b.c\r\nX-Role: admin"],
        ["Bearer a.b.c\n"],
        ["Bearer: a.b.c"],
        ["Bearer ="],
        ["Bearer a=b"],
        ["Bearer aé"],
        ["Bearer \uff41"],
        ["Ｂearer abc"],
        [b"Bearer a\xff"],
        ["Basic dXNlcjpwdw=="],
        ["Token abc"],
        ["a.b.c"],
        ["Bearer None"],
        ["Bearer null"],
        ["bearer UNDEFINED"],
    ],
)
def test_anything_but_one_bearer_token_is_refused(values: Sequence[str | bytes]) -> None:
    with pytest.raises(AuthenticationFailed) as caught:
        bearer_token(values)
    assert (caught.value.type, caught.value.code) == ("AuthenticationFailed", 401)
    assert "dXNlcjpwdw" not in str(caught.value)
    assert "a.b.c" not in str(caught.value)
