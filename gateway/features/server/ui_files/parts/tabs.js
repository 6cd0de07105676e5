// SPDX-License-Identifier: Apache-2.0
// Tabs as links: the address holds the tab, so that it can be shared and "back" works.

import { html } from "lit";

import { address, current } from "../core/router.js";

/**
 * Draw the tabs of a page and the content of the selected one. Links keep the project and the states in `keep`.
 * @param {Record<string, {label: string, draw: () => unknown}>} tabs by the value in the address; the first is the default
 * @param {string[]} [keep]
 */
export function tabs(tabs, keep = []) {
  const { kind, parts, query } = current();
  const names = Object.keys(tabs);
  const selected = names.includes(query.tab) ? query.tab : names[0];
  const kept = Object.fromEntries(["project", ...keep].map((name) => [name, query[name]]));
  return html`<nav class="tabs" aria-label="Parts of this page">
      ${names.map(
        (name, at) =>
          html`<a href=${address(kind, parts, { ...kept, tab: at === 0 ? undefined : name })} aria-current=${name === selected ? "page" : "false"}
            >${tabs[name].label}</a
          >`,
      )}
    </nav>
    <div class="tab">${tabs[selected].draw()}</div>`;
}
