// SPDX-License-Identifier: Apache-2.0
// Names of roles: lists of the API name roles by id. One request names all roles of a list.

import { get } from "./api.js";

const AT_ONCE = 50;

/** @typedef {{user?: string | null, role?: string | null}} Who */

/**
 * Return the names of roles by id. Roles that the caller may not read are left out.
 * @param {Who[]} principals @param {string | undefined} project
 * @returns {Promise<Map<string, string>>}
 */
export async function roleNames(principals, project) {
  const ids = [...new Set(principals.flatMap((each) => (each.role ? [each.role] : [])))].sort();
  const names = new Map();
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const query = ids.slice(at, at + AT_ONCE).map((id) => "roleIds=" + encodeURIComponent(id)).join("&");
    const { roles } = await get(`/management/v1/role?pageSize=100&${query}`, { project }).catch(() => ({ roles: [] }));
    for (const role of roles) {
      names.set(role.id, role.name);
    }
  }
  return names;
}

/** Return a principal as it is typed: `user/oidc~bob` or `role/its-id`. @param {Who} who */
export function typed(who) {
  return who.role ? `role/${who.role}` : `user/${who.user ?? ""}`;
}
