# SPDX-License-Identifier: Apache-2.0
"""Errors of the management API. Their `type` in the response is the name that Lakekeeper clients match."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable, DecisionEngineUnavailable
from gateway.iceberg.errors import CatalogError, ForbiddenException


class CatalogAlreadyBootstrapped(CatalogError, code=400):
    """The server is bootstrapped already."""


class ColumnNotFound(CatalogError, code=404):
    """The table has no such column. Returned only to callers that may see its grants."""


class AmbiguousColumn(CatalogError, code=409):
    """The grant to revoke is on another column that has, or had, the given name."""


class BootstrapForbidden(CatalogError, code=403):
    """Bootstrap was reopened for one user, and the caller is another."""


class TermsOfUseNotAccepted(CatalogError, code=400):
    """Bootstrap requires `accept-terms-of-use: true`."""


class ProjectNameAlreadyTaken(CatalogError, code=409):
    """Another project has this name or id."""


class ProjectNotEmpty(CatalogError, code=409):
    """The project still has warehouses, roles or tags."""


class ProjectIdNotFree(CatalogError, code=409):
    """Grants of an earlier project with this id are not yet revoked in OpenFGA."""


class LastServerAdmin(CatalogError, code=409):
    """The change would remove the last server administrator."""


class RoleSynchronized(CatalogError, code=409):
    """An identity provider manages the name and the members of the role."""


class UserSynchronized(CatalogError, code=409):
    """An identity provider manages the user's data and status."""


class UserRestricted(CatalogError, code=409):
    """A data policy has the user as a subject. Deleting the own record would end the restriction."""


class LastAdminRemoved(Exception):
    """The server would have no administrator after the change, so its transaction must not be committed."""


@contextmanager
def require_remaining_admin() -> Iterator[None]:
    """Context manager. Raises LastServerAdmin if the block raises LastAdminRemoved."""
    try:
        yield
    except LastAdminRemoved as nobody:
        raise LastServerAdmin(
            "This change would remove the last user with `admin` or `operator` on the server without an expiry. "
            "Grant one of these to another user first."
        ) from nobody


class WarehouseNotEmpty(CatalogError, code=409):
    """The warehouse still has namespaces."""


class WarehouseProtected(CatalogError, code=409):
    """The warehouse is protected: deletion requires `force`."""


class WarehouseHasUnfinishedTasks(CatalogError, code=409):
    """Tasks on the warehouse's files are unfinished and need data that deletion would remove."""


class WarehouseManaged(CatalogError, code=403):
    """Only instance admins may change this warehouse."""


class InstanceAdminRequired(CatalogError, code=403):
    """Only instance admins may change the manager of a warehouse."""


class WarehouseNameAlreadyTaken(CatalogError, code=400):
    """Another warehouse of the project has this name; letter case is ignored."""


class CreateWarehouseStorageProfileOverlap(CatalogError, code=400):
    """The base location equals, contains or is inside that of another warehouse of any project."""


class StorageProfileImmutable(CatalogError, code=400, type="UpdateError"):
    """A field of the storage profile that determines the warehouse's location cannot be changed."""


class StorageValidationFailed(CatalogError, code=400):
    """The storage fails checks that a warehouse requires. The details list each failed check."""


class DefaultFormatVersionNotAllowed(CatalogError, code=400):
    """The default format version is not among the allowed ones."""


class InvalidGrantPrivilege(CatalogError, code=400):
    """This privilege cannot be granted on this kind of object."""


class GrantPrincipalUnknown(CatalogError, code=404, type="GrantTargetNotFound"):
    """The user or role does not exist. A mistyped id must not become a grant."""


class TupleAlreadyExists(CatalogError, code=409, type="TupleAlreadyExistsError"):
    """The assignment of a privilege already exists."""


class TupleNotFound(CatalogError, code=404, type="TupleNotFoundError"):
    """The assignment of a privilege does not exist."""


class SelfAssignment(CatalogError, code=400):
    """A role cannot be assigned to itself."""


class CannotInspectPermissions(CatalogError, code=403):
    """The caller may not read the rights of other principals on an object."""


class TooManyChecks(CatalogError, code=400):
    """The request has more checks or principals than the server evaluates in one request."""


class TooManyEntries(CatalogError, code=400, type="BadRequestException"):
    """The request adds and removes more grants than one transaction may."""


class InvalidGrantExpiry(CatalogError, code=400):
    """The expiry time is invalid, or grants on this object type cannot expire."""


class StorageLayoutForbidsNamespaceMove(CatalogError, code=400):
    """The storage layout uses namespace names in paths, which would differ from the names after a move."""


class NamespaceCannotMoveIntoSelf(CatalogError, code=400):
    """A namespace cannot be moved into itself or into one of its descendants."""


class RoleMembershipCycle(CatalogError, code=409):
    """A role would become a member of itself through other roles."""


class RoleMembershipDepthExceeded(CatalogError, code=409):
    """Roles would be nested deeper than checks resolve."""


class RevocationPending(CatalogError, code=503):
    """The revocation is recorded but OpenFGA has not confirmed it yet. Delivery is retried."""


class AnswerPending(CatalogError, code=503):
    """A change of grants that concerns the answer has not reached OpenFGA yet."""


class PastNotAnswered(CatalogError, code=400):
    """A question about a past moment has no answer: the history does not reach back to it, or its model is gone."""


class AnswerDisagreed(CatalogError, code=500):
    """OpenFGA does not confirm an answer that was computed from the recorded grants. Only the log has the details."""


@contextmanager
def pending_during_outage(message: str) -> Iterator[None]:
    """Context manager. Raises RevocationPending if OpenFGA is down. The recorded revocation is delivered later."""
    try:
        yield
    except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown) as outage:
        raise RevocationPending(message) from outage


class InvalidTagDefinition(CatalogError, code=400):
    """The name or the allowed values of a tag are invalid."""


class InvalidTagValue(CatalogError, code=400):
    """The definition of the tag does not allow this value."""


class TagScopeNotAllowed(CatalogError, code=400):
    """The tag cannot be attached to this type of object."""


class TagScopeNarrowed(CatalogError, code=400):
    """The scope of a tag can only be widened."""


class TagSuggestionsDisabled(CatalogError, code=404):
    """The operator has not enabled the suggestions of tags."""


class TagNameAlreadyExists(CatalogError, code=409):
    """Another tag of the project has this name; letter case is ignored."""


class TagDefinitionInUse(CatalogError, code=409):
    """Objects carry the tag, or a data policy is bound to it."""


class RoleNameAlreadyExists(CatalogError, code=409):
    """Another role of the project has this name; letter case is ignored."""


class RoleSourceIdConflict(CatalogError, code=409):
    """Another role of the project has this provider and source id."""


class DataPolicyNameAlreadyExists(CatalogError, code=409):
    """Another data policy of the project has this name; letter case is ignored."""


class DataPolicyVersionConflict(CatalogError, code=409):
    """The data policy has another version than the request expects."""


class DataPolicyInvalid(CatalogError, code=400):
    """The definition of the data policy has problems; the message has their positions."""


class DataPolicyBound(CatalogError, code=409):
    """The data policy is bound to objects, so it is not deleted without `force`."""


class MappingTableNameAlreadyExists(CatalogError, code=409):
    """Another mapping table of the project has this name; letter case is ignored."""


class MappingTableNotFound(CatalogError, code=404):
    """The mapping table does not exist in the project of the request."""


class ReservedRoleProvider(CatalogError, code=400):
    """The provider is reserved for the catalog's own roles."""


class RoleNotManuallyAssignable(CatalogError, code=400):
    """The role's provider manages its members."""


class ProjectIdMissing(CatalogError, code=400):
    """The request names no project, and no default project is configured."""


class QueueNotFound(CatalogError, code=404):
    """No task queue has this name."""


class EventSinkNotFound(CatalogError, code=404):
    """No event sink in the settings has this name."""


class PolicyBundleNotFound(CatalogError, code=404):
    """There is no bundle of policies of this name."""


class PoliciesInvalid(CatalogError, code=503):
    """The policies in the gateway's directory cannot be served. The log of the gateway has the reason."""


class TaskNotSchedulable(CatalogError, code=400):
    """Tasks of this queue cannot be created by request."""


class TaskStateConflict(CatalogError, code=409):
    """The action is not possible in the current state of some tasks. The details list these tasks."""


class TaskAlreadyActive(CatalogError, code=409):
    """Another task of the queue is active for the same object."""


class TicketNotPending(CatalogError, code=409):
    """The ticket is decided, used or expired already."""


class AccessRequestNotOpen(CatalogError, code=409):
    """The access request is in another state than the request needs: decided, withdrawn, expired or ended."""


class AccessRequestAlreadyOpen(CatalogError, code=409):
    """The caller has a pending request for the same privileges on the same object."""


class AccessAlreadyGranted(CatalogError, code=409):
    """The approver already granted a privilege of the request to the requester, for as long or longer."""


class TooManyAccessRequests(CatalogError, code=409):
    """The caller has, or the object has, the largest allowed number of pending access requests."""


class AccessReminderTooEarly(CatalogError, code=409):
    """The request is too new for a reminder, or its last reminder is."""


class AccessRequestInvalid(CatalogError, code=400):
    """The access request names an object in a wrong form, or asks for more than the server allows."""


class OwnAccessRequestForbidden(ForbiddenException):
    """The caller made the request itself, so another principal has to decide about it."""


class BundleForbidden(ForbiddenException):
    """The caller may decide about some requests of a bundle, and not about all."""


class BreakGlassInvalid(CatalogError, code=400):
    """Break-glass is possible on a warehouse and on objects in it only."""


class BreakGlassAlreadyOpen(CatalogError, code=409):
    """The caller has a pending or active activation on the object."""


class BreakGlassNotOpen(CatalogError, code=409):
    """The activation is in another state than the request needs: pending, active, ended, lapsed or reviewed."""


class OwnBreakGlassForbidden(ForbiddenException):
    """The activation is the caller's own, so another principal has to confirm or review it."""


class EngineProbeNotOpen(CatalogError, code=409):
    """The engine probe is finished, expired, replaced or unknown."""


class EngineAddressUnknown(CatalogError, code=409):
    """The settings of the gateway have no address of the engine, so the gateway cannot read through it."""


class EngineUnreachable(CatalogError, code=409):
    """The engine did not respond to the gateway. The probe stays open, and the state of the engine is unchanged."""


class OwnProbeForbidden(ForbiddenException):
    """The caller may grant `enforcer`, but may not open or finish a probe of this engine."""


class OwnChangeForbidden(ForbiddenException):
    """The caller requested the change itself, so another approver has to decide about it."""


class PreviewForbidden(ForbiddenException):
    """The caller may not read policies whose expressions the preview would contain."""
