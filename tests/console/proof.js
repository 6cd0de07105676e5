// SPDX-License-Identifier: Apache-2.0
// Faults that the check must find. TypeScript reports an expected error that does not occur.

/** @typedef {import("lakegate-api").components["schemas"]["TagDefinition"]} TagDefinition */

/** @param {TagDefinition} tag */
export function wrongMember(tag) {
  // @ts-expect-error: answers of the API have the names of the OpenAPI document
  return tag.created_at;
}

/** @param {TagDefinition} tag @returns {string} */
export function rightMember(tag) {
  return tag["created-at"];
}
