// SPDX-License-Identifier: Apache-2.0
// An object as a file for `lakegate apply`, from what the caller may read. Applying the file changes nothing.

import { get, pages } from "./api.js";
import { managementPath } from "./objects.js";

/** @typedef {import("./objects.js").Thing} Thing */

/** Return a text or a number as JSON, without characters that YAML reads as line breaks or refuses. @param {unknown} value */
function json(value) {
  return JSON.stringify(value).replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, (each) => "\\u" + each.charCodeAt(0).toString(16).padStart(4, "0"));
}

/** Return a value as YAML. Texts are written as in JSON, which YAML contains. @param {any} value @param {string} indent @returns {string} */
export function yaml(value, indent = "") {
  if (Array.isArray(value)) {
    return value.length === 0 ? " []" : value.map((each) => `\n${indent}- ${yaml(each, indent + "  ").trimStart()}`).join("");
  }
  if (value !== null && typeof value === "object") {
    const lines = Object.entries(value)
      .filter(([, each]) => each !== undefined && each !== null)
      .map(([name, each]) => `\n${indent}${/^[a-z][a-z-]*$/.test(name) ? name : json(name)}:${yaml(each, indent + "  ")}`);
    return lines.length === 0 ? " {}" : lines.join("");
  }
  return ` ${typeof value === "string" && /^[a-z][a-z0-9_-]*$/i.test(value) && !/^(y|n|yes|no|on|off|true|false|null)$/i.test(value) ? value : json(value)}`;
}

/** Return the grants on an object as the file has them; undefined if the caller may not read them. @param {Thing} on */
async function grantsOn(on) {
  try {
    const more = on.type === "project" ? { project: on.id } : {};
    const { rows } = await pages(`${managementPath(on)}/grants?pageSize=1000`, "grants", { ...more, most: 10_000 });
    return rows.map((each) => ({ privilege: each.privilege, ...each.principal, "expires-at": each["expires-at"], reason: each.reason }));
  } catch {
    return undefined;
  }
}

/** Properties that the catalog writes itself. */
const OWN = new Set(["namespace_id", "location"]);

/** Return the levels of a namespace as the file has them. @param {string[] | undefined} levels */
function named(levels = []) {
  return levels.length === 1 ? levels[0] : levels;
}

/**
 * Return the fields of an object, without those that are absent.
 * @param {Thing & {properties?: Record<string, string>, row?: any}} on
 */
async function fieldsOf(on) {
  const grants = await grantsOn(on);
  if (on.type === "namespace") {
    const properties = Object.fromEntries(Object.entries(on.properties ?? {}).filter(([name]) => !OWN.has(name)));
    return { name: named(on.namespace), properties: Object.keys(properties).length > 0 ? properties : undefined, grants };
  }
  if (on.type === "warehouse") {
    // The credential is a secret: the file names it by `env` or `file`.
    const { "storage-profile": storage, "delete-profile": deletion, protected: guarded } = on.row;
    return { name: on.name, storage, "delete-profile": deletion, protected: guarded, grants };
  }
  return { name: on.name, grants };
}

/**
 * Return a warehouse, a namespace, or a table, view or generic table as a file. @param {Thing} on @returns {Promise<string>}
 */
export async function applyFile(on) {
  /** @type {Record<string, unknown>} */
  let inside = await fieldsOf(on);
  if (on.type !== "warehouse") {
    const namespace = on.type === "namespace" ? inside : { name: named(on.namespace), [`${on.type}s`]: [inside] };
    inside = { name: on.warehouseName, namespaces: [namespace] };
  }
  const { projects } = await get("/management/v1/project-list");
  const project = projects.find((/** @type {any} */ each) => each["project-id"] === on.project);
  return yaml({ version: 1, projects: [{ id: on.project, name: project?.["project-name"], warehouses: [inside] }] }).trimStart() + "\n";
}
