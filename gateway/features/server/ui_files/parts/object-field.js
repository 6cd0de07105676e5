// SPDX-License-Identifier: Apache-2.0
// Objects of requests: typed names, links to the objects of answers, and what an approval opens.

import { html, nothing } from "lit";

import { count } from "../core/format.js";
import { parseName } from "../core/names.js";
import { NotHere, pageOf, warehouseNamed } from "../core/objects.js";
import { levelsOf } from "../core/router.js";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const IN_A_NAMESPACE = ["table", "view", "generic-table"];

/** Draw a field for an object; `objectOf` reads it. @param {string} value */
export function objectField(value) {
  return html`<label>Object <input name="object" required .value=${value} placeholder="table/warehouse/namespace.name" autocomplete="off" spellcheck="false" /></label>
    <p class="quiet">As on its page: <code>table/demo/hr.people</code>, <code>namespace/demo/hr</code>, <code>warehouse/demo</code>, or <code>role/its-id</code>. The id of a warehouse can replace its name.</p>`;
}

/** Return the object of a typed name for a request of the API. Throws NotHere. @param {string} text @param {string} [project] */
export async function objectOf(text, project) {
  const { type, first, levels } = parseName(text);
  if (["project", "role", "tag", "data-policy"].includes(type)) {
    return { type, [`${type}-id`]: first };
  }
  if (!["warehouse", "namespace", ...IN_A_NAMESPACE].includes(type)) {
    throw new NotHere(`“${text}” is no name of an object: begin with its type, such as table/demo/hr.people.`);
  }
  // A holder of break-glass may not see the warehouse, and then names it by its id.
  const inside = { type, "warehouse-id": UUID.test(first) ? first : (await warehouseNamed(encodeURIComponent(first), project)).id };
  if (type === "warehouse") {
    return inside;
  }
  return type === "namespace" ? { ...inside, namespace: levels } : { ...inside, namespace: levels.slice(0, -1), name: levels[levels.length - 1] };
}

/** Return the object of an answer, as far as its page needs it. @param {any} object @param {string} name @returns {import("../core/objects.js").Thing} */
export function answered(object, name) {
  const type = object.type.replaceAll("_", "-");
  const levels = levelsOf(name);
  const inNamespace = IN_A_NAMESPACE.includes(type);
  return {
    type,
    id: object[`${type}-id`] ?? "",
    name: inNamespace ? levels[levels.length - 1] : name,
    project: object["project-id"] ?? undefined,
    warehouse: object["warehouse-id"],
    // The page of a warehouse is found by its id, too.
    warehouseName: object["warehouse-id"],
    namespace: inNamespace ? levels.slice(0, -1) : levels,
  };
}

/** Link to the object of an answer. @param {any} object @param {string} name */
export function objectLink(object, name) {
  return html`<a href=${pageOf(answered(object, name))}>${object.type.replaceAll("_", " ")} ${name}</a>`;
}

/** Draw to what an approval gives access beside the object itself. @param {any[] | null | undefined} opens */
export function opening(opens) {
  if (!opens) {
    return html`<span class="quiet">you may not see what it opens</span>`;
  }
  const inside = opens.filter((each) => each.count > 0);
  return inside.length === 0 ? html`this object only` : html`${inside.map((each, at) => html`${at > 0 ? ", " : nothing}${count(each.count)} ${each.type.replaceAll("_", " ")}${each.count === 1 ? "" : "s"}`)}`;
}
