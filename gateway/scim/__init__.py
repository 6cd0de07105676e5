# SPDX-License-Identifier: Apache-2.0
"""PURE: SCIM 2.0 (RFC 7643, RFC 7644), as far as identity providers use it: bodies, filters and patches.

Why not `scim2-models`? Version 0.12.3 was tried with the same bodies, in the contexts of requests.

- It accepts what is refused here. `"active": "yes"`, `"off"` and `0` become booleans. Of `userName` and `USERNAME`, or
  of `active` and `ACTIVE`, in one object the last one counts. `userName` may be empty, contain control or bidirectional
  characters, and be 100,000 characters long. A patch may remove `active`, or set it to null: the user is then neither
  active nor deactivated. A group may become a member. Only the caller could bound emails, members and operations.
- It refuses what providers send. Entra ID removes members by `path: members` with a list as value, replaces
  `emails[type eq "other"].value` where no such address is, puts such paths into a value without a path, and sends
  `[{"value": "False"}]` for `active`. An attribute that is not kept here, such as `department` or one of an unknown
  schema, refuses the whole request: a deactivation beside it would be lost.
- It edits the members of a whole group in memory. 5,000 members for a group of 20,000 take 1.8 seconds of a worker
  process; the instructions that `patch` makes of them take 0.15, and PostgreSQL applies them.
- It brings pydantic, a second system of wire types beside msgspec.
"""
