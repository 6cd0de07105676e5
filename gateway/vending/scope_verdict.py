# SPDX-License-Identifier: Apache-2.0
"""The scope verdict of a warehouse, `proven`, `escaped` or `inconclusive`, and the rule by which it permits vending.

A verdict is the result of the canary (`canary.py`), which tries to leave the scope of vended credentials.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec
import structlog

from gateway.scope.profile import NoVending, StorageProfile

__all__ = ["Enforcement", "Finding", "ScopeReport", "ScopeRule", "Verdict", "announce"]

_log = structlog.get_logger("vending.canary")


class Verdict(StrEnum):
    """`proven`: every attempt was refused. `escaped`: an attempt was not refused. `inconclusive`: neither could be
    shown. `not-vended`: the warehouse vends no credentials.
    """

    PROVEN = "proven"
    ESCAPED = "escaped"
    INCONCLUSIVE = "inconclusive"
    NOT_VENDED = "not-vended"

    @property
    def conclusive(self) -> bool:
        """Return True if the verdict shows whether the store enforces the scope."""
        return self is not Verdict.INCONCLUSIVE


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """An attempt that was not refused.

    `level` is the access level of the credential, `attempt` the kind of the request, and `place` its target. `text`
    describes all of them for a reader.
    """

    level: str
    attempt: str
    place: str
    text: str


class ScopeReport(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The result of a run of the canary.

    `findings` are attempts that the store carried out. `unclear` are attempts whose response was neither a success nor
    a refusal. `attempts` is the number of requests with a conclusive result. `reason` explains the verdict if the two
    lists do not.
    """

    verdict: Verdict
    attempts: int = 0
    findings: tuple[Finding, ...] = ()
    unclear: tuple[Finding, ...] = ()
    reason: str = ""


class Enforcement(StrEnum):
    """The warehouses that get no credentials. `off`: none. `escaped`: those whose store let a credential leave its
    scope. `unproven`: all without a proof for their current storage profile.
    """

    OFF = "off"
    ESCAPED = "escaped"
    UNPROVEN = "unproven"


_ESCAPED: Final = (
    "the store let a vended credential leave its scope (GET /management/v1/warehouse/{id}/scope-report names the "
    "attempts), so the operator's setting forbids credentials for this warehouse"
)
_UNPROVEN: Final = (
    "it is not proven that the store confines vended credentials (POST /management/v1/warehouse/{id}/scope-report runs "
    "the proof), and the operator's setting forbids credentials for this warehouse until then"
)


class ScopeRule:
    """The rule that decides by the stored verdict whether a warehouse may vend credentials, and sign with them."""

    def __init__(self, enforcement: Enforcement) -> None:
        self._enforcement = enforcement

    def refusal(self, verdict: str | None) -> str | None:
        """Return the reason why no credential may be vended; None if one may.

        `verdict` is the verdict on the current storage profile, None if there is none.
        """
        match self._enforcement:
            case Enforcement.OFF:
                return None
            case Enforcement.ESCAPED:
                return _ESCAPED if verdict == Verdict.ESCAPED else None
            case Enforcement.UNPROVEN:
                if verdict == Verdict.PROVEN:
                    return None
                return _ESCAPED if verdict == Verdict.ESCAPED else _UNPROVEN

    def signing_refusal(self, profile: StorageProfile, verdict: str | None) -> str | None:
        """Return the reason why no request may be signed with a vended credential; None if signing is permitted.

        A warehouse that vends no credentials signs with its own key, which the verdict does not concern.
        """
        return None if isinstance(profile.downscoping, NoVending) else self.refusal(verdict)


def announce(warehouse_id: str, report: ScopeReport) -> None:
    """Log the result of a run. An escape is logged as an error with its attempts, an inconclusive run as a warning."""
    match report.verdict:
        case Verdict.ESCAPED:
            attempts = sorted({f"{found.level}: {found.text}" for found in report.findings})
            _log.error("canary.escaped", warehouse=warehouse_id, findings=attempts)
        case Verdict.INCONCLUSIVE:
            unclear = sorted({f"{found.level}: {found.text}" for found in report.unclear})
            _log.warning("canary.undecided", warehouse=warehouse_id, reason=report.reason, unclear=unclear)
        case Verdict.PROVEN | Verdict.NOT_VENDED:
            _log.info("canary.finished", warehouse=warehouse_id, verdict=report.verdict.value)
