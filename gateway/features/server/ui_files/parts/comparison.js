// SPDX-License-Identifier: Apache-2.0
// A comparison of what two users can do: for each object, the actions of one, of both, and of the other.

import { html, nothing } from "lit";

import { words } from "../core/format.js";
import { thingOf } from "../core/objects.js";
import { resourceLink } from "./rights.js";
import { badge } from "./small.js";

/** Return the actions on each object. Actions in its contents are written "table: read data". @param {any[]} rows */
function actionsByObject(rows) {
  /** @type {Map<string, {resource: any, actions: Set<string>}>} */
  const found = new Map();
  for (const row of rows) {
    const on = thingOf(row.resource);
    const key = `${on.type} ${on.id} ${row.resource.column ?? ""}`;
    const entry = found.get(key) ?? { resource: row.resource, actions: new Set() };
    for (const held of row.held) {
      held.actions.forEach((/** @type {string} */ each) => entry.actions.add(words(each)));
    }
    for (const [type, actions] of Object.entries(row.contents ?? {})) {
      /** @type {string[]} */ (actions).forEach((each) => entry.actions.add(`${words(type)}s: ${words(each)}`));
    }
    found.set(key, entry);
  }
  return found;
}

/** Draw a comparison. @param {{one: string, other: string, rows: any[][], more: boolean}} found @param {Map<string, string>} names */
export function comparison({ one, other, rows, more }, names) {
  const [first, second] = rows.map(actionsByObject);
  const keys = [...new Set([...first.keys(), ...second.keys()])];
  /** @type {Set<string>} */
  const none = new Set();
  return html`<table>
      <caption>Rights of ${one} and ${other}</caption>
      <thead><tr><th scope="col">On</th><th scope="col">Only ${one}</th><th scope="col">Both</th><th scope="col">Only ${other}</th></tr></thead>
      <tbody>
        ${keys.map((key) => {
          const left = first.get(key)?.actions ?? none;
          const right = second.get(key)?.actions ?? none;
          const list = (/** @type {string[]} */ some) => some.join(", ") || html`<span class="quiet">—</span>`;
          const onlyLeft = [...left].filter((each) => !right.has(each));
          const onlyRight = [...right].filter((each) => !left.has(each));
          return html`<tr>
            <th scope="row">${resourceLink((first.get(key) ?? second.get(key))?.resource, names)} ${onlyLeft.length + onlyRight.length === 0 ? badge("the same", "good") : nothing}</th>
            <td>${list(onlyLeft)}</td><td>${list([...left].filter((each) => right.has(each)))}</td><td>${list(onlyRight)}</td>
          </tr>`;
        })}
      </tbody>
    </table>
    ${more ? html`<p class="quiet">There are more objects than the first hundred.</p>` : nothing}`;
}
