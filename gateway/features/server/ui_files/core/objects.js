// SPDX-License-Identifier: Apache-2.0
// Objects of the catalog: their names in addresses, their paths in the API, and the search of ids by names.
//
// A name is written `type/warehouse/namespace.name`, such as `table/demo/hr.people`, everywhere: here, on the command
// line, in `apply` and in messages.

import { get, pages, path } from "./api.js";
import { joined, quoted } from "./names.js";
import { address, dotted, levelsOf } from "./router.js";

/**
 * @typedef {"server" | "project" | "user" | "warehouse" | "namespace" | "table" | "view" | "generic-table" | "role" | "tag" | "data-policy"} Type
 * @typedef {{type: Type, id: string, name: string, project?: string, warehouse?: string, warehouseName?: string, namespace?: string[]}} Thing
 */

/** Types of objects in a namespace. @type {Type[]} */
export const TABULARS = ["table", "view", "generic-table"];

const MANAGEMENT = "/management/v1";

/** Return the path of an object in the management API. @param {Thing} on */
export function managementPath(on) {
  switch (on.type) {
    case "server":
    case "project":
      return `${MANAGEMENT}/${on.type}`;
    case "role":
    case "user":
      return MANAGEMENT + path`/${on.type}/${on.id}`;
    case "tag":
      return MANAGEMENT + path`/tag-definition/${on.id}`;
    case "data-policy":
      return MANAGEMENT + path`/data-policy/${on.id}`;
    case "warehouse":
      return MANAGEMENT + path`/warehouse/${on.id}`;
    default:
      return MANAGEMENT + path`/warehouse/${on.warehouse ?? ""}/${on.type}/${on.id}`;
  }
}

/** Return the path of a namespace or a tabular in the catalog API. @param {Thing} on */
export function catalogPath(on) {
  // Levels of a namespace are separated by the unit separator (Iceberg REST specification, parameter `namespace`).
  const namespace = path`/catalog/v1/${on.warehouse ?? ""}/namespaces/${(on.namespace ?? []).join("\u001f")}`;
  switch (on.type) {
    case "table":
      return namespace + path`/tables/${on.name}`;
    case "view":
      return namespace + path`/views/${on.name}`;
    case "generic-table":
      return namespace.replace("/catalog/", "/lakekeeper/") + path`/generic-tables/${on.name}`;
    default:
      return namespace;
  }
}

/** Return the members that name an object in a request, such as `{"table-id": …, "warehouse-id": …}`. @param {Thing} on */
export function idsOf(on) {
  /** @type {Record<string, string>} */
  const ids = on.type === "server" ? {} : { [`${on.type}-id`]: on.id };
  if (on.warehouse !== undefined && on.type !== "warehouse") {
    ids["warehouse-id"] = on.warehouse;
  }
  return ids;
}

/** Return the object of a question: `{"table": {"table-id": …}}`. @param {Thing} on @param {Record<string, unknown>} [more] */
export function questionOn(on, more = {}) {
  return { [on.type]: { ...idsOf(on), ...more } };
}

/** Return the levels of a namespace, or those of a tabular and its name. @param {Thing} on */
function levels(on) {
  return on.type === "namespace" ? (on.namespace ?? []) : [...(on.namespace ?? []), on.name];
}

/** Return the name of an object, as it is written everywhere. @param {Thing} on */
export function nameOf(on) {
  switch (on.type) {
    case "server":
      return "server";
    case "user":
      return `user/${on.id}`;
    case "namespace":
    case "table":
    case "view":
    case "generic-table":
      return `${on.type}/${quoted(on.warehouseName ?? "")}/${joined(levels(on))}`;
    default:
      return `${on.type}/${on.name || on.id}`;
  }
}

/** The project that addresses leave out. */
let defaultProject = "";

/** Learn the project that addresses leave out. The console calls this before it shows a page. */
export async function learnDefaultProject() {
  defaultProject = (await get(`${MANAGEMENT}/info`))["default-project-id"] ?? "";
}

/** Return the project of an address; undefined for the default one. @param {string | undefined} id */
export function inAddress(id) {
  return id === defaultProject ? undefined : id;
}

/** Return the address of an object's page. @param {Thing} on @param {Record<string, string | undefined>} [state] */
export function pageOf(on, state = {}) {
  const project = inAddress(on.project);
  switch (on.type) {
    case "server":
      return address("server", [], state);
    case "project":
      return address("project", [encodeURIComponent(on.id)], state);
    case "role":
    case "user":
    case "tag":
    case "data-policy":
      return address(on.type, [encodeURIComponent(on.id)], { project, ...state });
    case "warehouse":
      return address("warehouse", [encodeURIComponent(on.name)], { project, ...state });
    default:
      return address(on.type, [encodeURIComponent(on.warehouseName ?? ""), dotted(levels(on))], { project, ...state });
  }
}

/** Return the projects that the caller sees. @returns {Promise<{"project-id": string, "project-name": string}[]>} */
export async function projects() {
  return (await get(`${MANAGEMENT}/project-list`)).projects;
}

/** Return the project of an address, or else the default one, or else the first one. @param {string | undefined} named */
export async function projectOf(named) {
  const all = await projects();
  if (named !== undefined) {
    return all.find((each) => each["project-id"] === named) ?? { "project-id": named, "project-name": named };
  }
  return all.find((each) => each["project-id"] === defaultProject) ?? all[0] ?? null;
}

/** Return the warehouses of a project, also the inactive ones. @param {string} project @returns {Promise<any[]>} */
export async function warehouses(project) {
  return (await get(`${MANAGEMENT}/warehouse?warehouseStatus=active,inactive`, { project })).warehouses;
}

/** An object of the address does not exist, or the caller may not see it: both look the same. */
export class NotHere extends Error {}

/**
 * Return the warehouse of a name or an id in an address. Throws NotHere.
 * @param {string} name
 * @param {string | undefined} project
 * @returns {Promise<Thing & {row: any}>}
 */
export async function warehouseNamed(name, project) {
  const wanted = decodeURIComponent(name);
  const named = await projectOf(project);
  const rows = named === null ? [] : await warehouses(named["project-id"]);
  const row = rows.find((each) => each.name === wanted) ?? rows.find((each) => each["warehouse-id"] === wanted);
  if (row === undefined) {
    throw new NotHere(`There is no warehouse ${wanted} here, or you may not see it.`);
  }
  const id = row["warehouse-id"];
  return { type: "warehouse", id, name: row.name, project: row["project-id"], warehouse: id, warehouseName: row.name, row };
}

/**
 * Return a namespace by its dotted name, with its properties. Throws ApiError and NotHere.
 * @param {string} warehouse @param {string} text @param {string | undefined} project
 * @returns {Promise<Thing & {properties: Record<string, string>}>}
 */
export async function namespaceNamed(warehouse, text, project) {
  const inside = await warehouseNamed(warehouse, project);
  const namespace = levelsOf(text);
  /** @type {Thing} */
  const on = { ...contained(inside), type: "namespace", id: "", name: namespace[namespace.length - 1], namespace };
  const { properties } = await get(catalogPath(on));
  return { ...on, id: properties.namespace_id, properties };
}

/** Return what objects in a warehouse share. @param {Thing} inside */
export function contained({ project, warehouse, warehouseName }) {
  return { project, warehouse, warehouseName };
}

/**
 * Return a table, view or generic table by its dotted name; its id is looked up in the list of its namespace, which
 * needs no right to read it. Throws ApiError and NotHere.
 * @param {Type} type @param {string} warehouse @param {string} text @param {string | undefined} project
 * @returns {Promise<Thing>}
 */
export async function tabularNamed(type, warehouse, text, project) {
  const inside = await warehouseNamed(warehouse, project);
  const levels = levelsOf(text);
  /** @type {Thing} */
  return { ...contained(inside), type, id: "", name: levels[levels.length - 1], namespace: levels.slice(0, -1) };
}

/** Return the actions that the caller may take on an object. @param {Thing} on @returns {Promise<Set<string>>} */
export async function actionsOn(on) {
  const more = on.type === "project" ? { project: on.id } : {};
  const answer = await get(`${managementPath(on)}/actions`, more);
  return new Set(answer["allowed-actions"].map((/** @type {any} */ each) => each.action ?? each));
}

/** Return the object that an answer of the API names by ids. @param {Record<string, any>} resource @returns {Thing} */
export function thingOf(resource) {
  const type = /** @type {Type} */ (resource.type.replaceAll("_", "-"));
  const id = resource[`${type}-id`] ?? resource["tag-definition-id"] ?? resource.id ?? "";
  return { type, id, name: resource.name ?? "", project: resource["project-id"], warehouse: resource["warehouse-id"] };
}

/** Return the children of a namespace, or the top-level namespaces. @param {Thing} on @returns {Promise<Thing[]>} */
export async function namespacesIn(on) {
  const parent = on.type === "namespace" ? "&parent=" + encodeURIComponent((on.namespace ?? []).join("\u001f")) : "";
  const first = path`/catalog/v1/${on.warehouse ?? ""}/namespaces` + `?pageSize=1000&returnUuids=true${parent}`;
  const { rows } = await pages(first, "namespaces", { most: 10_000 });
  return rows.map((namespace) => ({ ...contained(on), type: "namespace", id: "", name: namespace[namespace.length - 1], namespace }));
}
