// SPDX-License-Identifier: Apache-2.0
// Small parts that all pages use: times, ids to copy, links to objects and principals, empty lists, states.

import { html, nothing } from "lit";

import { relative, time } from "../core/format.js";
import { nameOf, pageOf } from "../core/objects.js";
import { address } from "../core/router.js";

/** Draw a time in the reader's zone; the exact value is in its title. @param {string | number | null | undefined} value */
export function when(value, otherwise = "—") {
  if (value === null || value === undefined) {
    return html`<span class="quiet">${otherwise}</span>`;
  }
  const exact = new Date(value).toISOString();
  return html`<time datetime=${exact} title=${exact}>${time(value)}</time> <span class="quiet">${relative(value)}</span>`;
}

/** Draw a button that copies a text. @param {string} text @param {string} what */
export function copyButton(text, what) {
  /** @param {MouseEvent} event */
  const copy = async (event) => {
    const button = /** @type {HTMLButtonElement} */ (event.currentTarget);
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  };
  return html`<button type="button" class="small" aria-label="Copy ${what}" @click=${copy}>Copy</button>`;
}

/** Draw an id or a name with a button that copies it. @param {string} text @param {string} what */
export function copied(text, what) {
  return html`<span class="copied"><code>${text}</code> ${copyButton(text, what)}</span>`;
}

/** Draw an empty list: what is missing, and what to do. @param {unknown} text @param {unknown} [remedy] */
export function empty(text, remedy = nothing) {
  return html`<p class="empty">${text} ${remedy}</p>`;
}

/** Draw a state with a colour and its word. @param {string} word @param {"good" | "bad" | "warn" | "plain"} [kind] */
export function badge(word, kind = "plain") {
  return html`<span class="badge ${kind}">${word}</span>`;
}

/** Link to a page of an object by its name. @param {import("../core/objects.js").Thing} on */
export function thing(on) {
  return html`<a href=${pageOf(on)}>${nameOf(on)}</a>`;
}

/** Link to a user or a role of an answer of the API. @param {{user?: string | null, role?: string | null}} who */
export function principal(who) {
  return who.role
    ? html`<a href=${address("role", [encodeURIComponent(who.role)])}>role/${who.role}</a>`
    : html`<a href=${address("user", [encodeURIComponent(who.user ?? "")])}>user/${who.user}</a>`;
}

/** Return the id of a typed principal: `user/oidc~bob` or `role/<id>`; a bare text is a user's id. @param {string} text */
export function identityOf(text) {
  const trimmed = text.trim();
  return trimmed.startsWith("role/") ? { role: trimmed.slice(5) } : { user: trimmed.replace(/^user\//, "") };
}
