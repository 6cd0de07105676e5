# SPDX-License-Identifier: Apache-2.0
"""Operations on the page where users sign in with a browser.

The page is public, because its users have no token yet. It is the same for every caller and contains only data that the
provider publishes. All other data are read over the API with the token of the signed-in user.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.operation import Audience, PublicAudience, ReadOperation


@dataclass(frozen=True)
class ShowUi(ReadOperation):
    """Show the page on which users sign in and see their identity and their visible objects."""

    endpoint: ClassVar[str] = "GET /ui"
    open_to: ClassVar[PublicAudience] = PublicAudience(Audience.ALL)


@dataclass(frozen=True)
class GetUiAsset(ReadOperation):
    """Return the script or the style of the sign-in page."""

    endpoint: ClassVar[str] = "GET /ui/{asset}"
    open_to: ClassVar[PublicAudience] = PublicAudience(Audience.ALL)
