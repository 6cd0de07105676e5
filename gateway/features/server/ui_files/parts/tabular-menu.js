// SPDX-License-Identifier: Apache-2.0
// What one may do with a table, view or generic table: rename, move, protect, drop. What the caller may not do is shown with the
// missing right.

import { html } from "lit";

import { change, get, path } from "../core/api.js";
import { duration } from "../core/format.js";
import { joined, partsOf } from "../core/names.js";
import { catalogPath, managementPath, nameOf, pageOf, warehouseNamed } from "../core/objects.js";
import { go } from "../core/router.js";
import { confirmDestruction, openDialog } from "./dialog.js";
import { menu } from "./menu.js";

/** @typedef {import("../core/objects.js").Thing} Thing */

/** Return what a drop does in this warehouse. @param {Thing} on */
async function consequenceOf(on) {
  const { row } = await warehouseNamed(encodeURIComponent(on.warehouseName ?? ""), on.project);
  const profile = row["delete-profile"];
  const name = html`<code>${nameOf(on)}</code>`;
  return profile.type === "soft"
    ? html`Drops ${name}. It can be restored for ${duration(profile["expiration-seconds"])} (warehouse, tab “Deleted”); then it and its files are deleted. Engines lose it at once.`
    : html`Drops ${name} at once. It cannot be restored. Its files stay, unless an engine purges them.`;
}

/** @param {Thing} on */
async function drop(on) {
  const dropped = await confirmDestruction({
    title: `Drop ${on.name}`,
    name: on.name,
    consequence: await consequenceOf(on),
    action: "Drop",
    submit: () => change("DELETE", catalogPath(on)),
  });
  if (dropped) {
    go(pageOf({ ...on, type: "namespace", id: "", name: "" }));
  }
}

/** @param {Thing} on */
async function rename(on) {
  const root = on.type === "generic-table" ? "/lakekeeper/v1" : "/catalog/v1";
  const kind = { table: "tables", view: "views", "generic-table": "generic-tables" }[/** @type {"table"} */ (on.type)];
  const levels = [...(on.namespace ?? []), on.name];
  let renamed = levels;
  const done = await openDialog({
    title: `Rename or move ${on.name}`,
    action: "Rename",
    body: html`<p><label>New name, with its namespace <input name="name" required .value=${joined(levels)} /></label></p>
      <p class="quiet">Grants, tags and data policies stay with the object. Policies that are bound to a name apply to the new name.</p>`,
    submit: async ({ name }) => {
      renamed = partsOf(name);
      return change("POST", root + path`/${on.warehouse ?? ""}/` + `${kind}/rename`, {
        source: { namespace: on.namespace, name: on.name },
        destination: { namespace: renamed.slice(0, -1), name: renamed[renamed.length - 1] },
      });
    },
  });
  if (done) {
    go(pageOf({ ...on, namespace: renamed.slice(0, -1), name: renamed[renamed.length - 1] }));
  }
}

/** @param {Thing} on @param {() => void} done */
async function protect(on, done) {
  const { protected: now } = await get(`${managementPath(on)}/protection`);
  const changed = await openDialog({
    title: now ? `Allow drops of ${on.name}` : `Protect ${on.name}`,
    action: now ? "Allow drops" : "Protect",
    body: html`<p>${now ? "It is protected: drops are refused. Afterwards principals with the right may drop it." : "Drops are refused until the protection is taken away."}</p>`,
    submit: () => change("POST", `${managementPath(on)}/protection`, { protected: !now }),
  });
  if (changed) {
    done();
  }
}

/**
 * Draw the menu of a tabular.
 * @param {Thing} on @param {Set<string>} actions @param {() => void} changed
 */
export function tabularMenu(on, actions, changed) {
  const missing = (/** @type {string} */ action) => `needs the right “${action}”; owners and principals with manage_grants can grant it`;
  return menu("Actions", [
    { label: "Rename or move …", allowed: actions.has("rename"), missing: missing("rename"), run: () => rename(on) },
    { label: "Protection …", allowed: actions.has("set_protection"), missing: missing("set_protection"), run: () => protect(on, changed) },
    { label: "Drop …", allowed: actions.has("drop"), missing: missing("drop"), run: () => drop(on) },
  ]);
}
