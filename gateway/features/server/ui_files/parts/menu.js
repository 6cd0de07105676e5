// SPDX-License-Identifier: Apache-2.0
// The menu of an object: what the caller may do, and the rest disabled, with the reason.

import { html } from "lit";

/**
 * Draw a button that opens a list of actions (the browser's popover: Escape and a click elsewhere close it).
 * @param {string} label
 * @param {{label: string, allowed: boolean, missing: string, run: () => unknown}[]} actions `missing` names the missing right
 * @param {string} [key] distinguishes menus with one label on a page
 */
export function menu(label, actions, key = label) {
  const id = `menu-${encodeURIComponent(key)}`;
  /** @param {() => unknown} run */
  const choose = (run) => () => {
    document.getElementById(id)?.hidePopover();
    run();
  };
  return html`<span class="menu">
    <button type="button" popovertarget=${id} aria-haspopup="true">${label} ▾</button>
    <ul id=${id} popover class="menu-list">
      ${actions.map(
        ({ label, allowed, missing, run }) => html`<li>
          <button type="button" aria-disabled=${allowed ? "false" : "true"} title=${allowed ? "" : missing} @click=${allowed ? choose(run) : undefined}>
            ${label}${allowed ? "" : html`<span class="quiet"> — ${missing}</span>`}
          </button>
        </li>`,
      )}
    </ul>
  </span>`;
}
