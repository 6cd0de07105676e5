// SPDX-License-Identifier: Apache-2.0
// Bindings of data policies: choose an object, see who is affected, and bind. Lists of affected tables.

import { html, nothing } from "lit";

import { ask, change, get } from "../core/api.js";
import { words } from "../core/format.js";
import { NotHere, catalogPath, namespaceNamed, pageOf, tabularNamed, warehouseNamed } from "../core/objects.js";
import { levelsOf } from "../core/router.js";
import { openDialog } from "./dialog.js";
import { badge, principal } from "./small.js";
import "./long-list.js";

/** Return the id of the tag with a name. @param {string} name @param {string | undefined} project */
async function tagNamed(name, project) {
  const { "tag-definitions": found } = await get(`/management/v1/tag-definition?name=${encodeURIComponent(name)}`, { project });
  const tag = found.find((/** @type {any} */ each) => each.name === name);
  if (tag === undefined) {
    throw new NotHere(`There is no tag ${name} here, or you may not see it.`);
  }
  return tag.id;
}

/** Return a change of bindings that adds a typed object. @param {string} text @param {string | undefined} project */
export async function bindingOf(text, project) {
  const [type = "", first = "", second = ""] = text.trim().split("/");
  if (type === "tag") {
    return { add: [{ type, id: await tagNamed(decodeURIComponent(first), project) }] };
  }
  const { id: warehouse } = await warehouseNamed(first, project);
  switch (type) {
    case "warehouse":
      return { add: [{ type, id: warehouse }] };
    case "namespace":
      return { add: [{ type, id: (await namespaceNamed(first, second, project)).id, "warehouse-id": warehouse }] };
    case "table": {
      const loaded = await get(catalogPath(await tabularNamed("table", first, second, project)), { headers: { "X-Iceberg-Access-Delegation": "client-managed" } });
      return { add: [{ type, id: loaded.metadata["table-uuid"], "warehouse-id": warehouse }] };
    }
    case "name": {
      const levels = levelsOf(second);
      return { "add-names": [{ "warehouse-id": warehouse, namespace: levels.slice(0, -1), name: levels[levels.length - 1] }] };
    }
    default:
      throw new NotHere(`“${text}” is no object that a policy can be bound to.`);
  }
}

/** Draw the effect of a policy on a table. @param {any} row */
function effect(row) {
  const masked = (row["masked-columns"] ?? []).map((/** @type {any} */ each) => `${each.name}: ${words(each.action)}`);
  const filtered = row["filtered-columns"] ?? [];
  return html`${masked.join(", ")}${filtered.length > 0 ? ` rows by ${filtered.join(", ")}` : ""}
    ${row["hides-all-rows"] ? badge("no rows", "bad") : nothing}${row.refused ? badge("no data", "bad") : nothing}${row.lost ? badge("name lost the policy", "warn") : nothing}`;
}

/** @param {any} row @param {string | undefined} project */
function tableLink(row, project) {
  const on = { type: row.type, id: row["table-id"], name: row.name, namespace: row.type === "namespace" ? [...row.namespace, row.name] : row.namespace, project, warehouseName: row["warehouse-id"] };
  return html`<a href=${pageOf(on)}>${[...row.namespace, row.name].join(".")}</a>`;
}

/** @param {any} row */
function people(row) {
  return row.principals.map((/** @type {any} */ each, /** @type {number} */ at) => html`${at > 0 ? ", " : nothing}${principal({ [each.type]: each.id })}`);
}

/** Draw the tables that a policy affects. @param {unknown} source @param {string | undefined} project */
export function affectedList(source, project) {
  const columns = [
    { label: "Table", draw: (/** @type {any} */ row) => tableLink(row, project) },
    { label: "Effect", draw: effect },
    { label: "Readers with a grant", width: "minmax(12rem, 2fr)", draw: people },
  ];
  return html`<lg-long-list label="Affected tables" .source=${source} .columns=${columns} .empty=${"The policy has no effect on any table that you may see."}></lg-long-list>
    <p class="quiet">Members of the named roles and administrators of the server are affected too.</p>`;
}

/** Draw the answer of a dry run. @param {any} tried */
export function affectedTables(tried) {
  return html`${tried["restricts-caller"] ? html`<p>${badge("you too", "warn")} The policy will also restrict you.</p>` : nothing}
    ${tried.tables.length === 0
      ? html`<p>No table is affected.</p>`
      : html`<ul>${tried.tables.map((/** @type {any} */ row) => html`<li><code>${[...row.namespace, row.name].join(".")}</code> ${effect(row)}: ${people(row)}</li>`)}</ul>`}
    ${tried["next-page-token"] ? html`<p class="quiet">Further tables are affected.</p>` : nothing}`;
}

/** Ask for an object, show who would be affected, and bind. Returns True if the policy was bound.
 * @param {string} at the policy's path @param {{project: string | undefined}} options */
export async function bindDialog(at, { project }) {
  /** @type {any} */
  let wanted = null;
  /** @type {any} */
  let tried = null;
  const chosen = await openDialog({
    title: "Bind the policy",
    action: "See who is affected",
    body: html`<p><label>Object <input name="object" required placeholder="table/demo/hr.people" autocomplete="off" spellcheck="false" /></label></p>
      <p class="quiet">Also <code>namespace/demo/hr</code>, <code>warehouse/demo</code>, <code>tag/pii</code>, or a name with patterns: <code>name/demo/hr.people_*</code>.</p>`,
    submit: async ({ object }) => {
      wanted = await bindingOf(object, project);
      tried = await ask(`${at}/bindings/dry-run`, wanted);
    },
  });
  return (
    chosen &&
    openDialog({ title: "Who would be affected", action: "Bind", body: affectedTables(tried), submit: () => change("POST", `${at}/bindings`, wanted) })
  );
}
