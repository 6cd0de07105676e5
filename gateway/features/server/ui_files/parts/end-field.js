// SPDX-License-Identifier: Apache-2.0
// A field for the end of a right, with buttons for usual lengths.

import { html } from "lit";

const DAY_MS = 86_400_000;
const LENGTHS = [
  { label: "One day", days: 1 },
  { label: "One week", days: 7 },
  { label: "Four weeks", days: 28 },
];

/** Return a time as a field of the reader's zone shows it. @param {number} at milliseconds */
function local(at) {
  return new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Draw the field; `endOf` reads it. @param {{days?: number, never?: boolean}} [options] the first value; and whether it may be empty */
export function endField({ days = 7, never = true } = {}) {
  const set = (/** @type {string} */ value) => (/** @type {Event} */ event) => {
    const inside = /** @type {HTMLElement} */ (event.currentTarget).closest(".end-field");
    /** @type {HTMLInputElement} */ (inside?.querySelector("input")).value = value;
  };
  return html`<div class="end-field">
    <label>Ends <input name="ends" type="datetime-local" value=${local(Date.now() + days * DAY_MS)} ?required=${!never} /></label>
    <p class="buttons">
      ${LENGTHS.map((each) => html`<button type="button" class="small" @click=${(/** @type {Event} */ event) => set(local(Date.now() + each.days * DAY_MS))(event)}>${each.label}</button>`)}
      ${never ? html`<button type="button" class="small" @click=${set("")}>No end</button>` : ""}
    </p>
  </div>`;
}

/** Return the end of a form's values for the API, or null. @param {Record<string, string>} values */
export function endOf(values) {
  return values.ends ? new Date(values.ends).toISOString() : null;
}

/** Return the seconds until the end of a form's values. @param {Record<string, string>} values */
export function secondsOf(values) {
  return Math.max(1, Math.round((new Date(values.ends).getTime() - Date.now()) / 1000));
}
