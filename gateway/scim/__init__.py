# SPDX-License-Identifier: Apache-2.0
"""The part of SCIM 2.0 (RFC 7643, RFC 7644) that identity providers use: bodies, filters and patches.

The library `scim2-models` is not used. Version 0.12.3 was tested with the same bodies, in its request contexts.

- It accepts values that this package refuses. `"active": "yes"`, `"off"` and `0` become booleans. If an object contains
  both `userName` and `USERNAME`, or `active` and `ACTIVE`, the last one counts. `userName` may be empty, have 100,000
  characters, and contain control or bidirectional characters. A patch may remove `active` or set it to null: the user
  is then neither active nor deactivated. A group may become a member. The library does not limit the number of emails,
  members and operations.
- It refuses requests that providers send. Entra ID removes members by `path: members` with a list as value. It replaces
  `emails[type eq "other"].value` when no such email exists, and puts such paths into a value without a path. It sends
  `[{"value": "False"}]` for `active`. The library refuses the whole request if one attribute is unknown, such as
  `department` or an attribute of another schema. A deactivation in the same request would be lost.
- It edits the members of a whole group in memory. To add 5,000 members to a group of 20,000 takes 1.8 seconds of a
  worker process. `patch` computes the changes in 0.15 seconds, and PostgreSQL applies them.
- It depends on pydantic, a second system of wire types beside msgspec.
"""
