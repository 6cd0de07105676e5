// SPDX-License-Identifier: Apache-2.0
// Fields of forms with their descriptions, entries of menus by the caller's actions, and the choice of a project or a
// warehouse, which the address holds.

import { html, nothing } from "lit";

import { words } from "../core/format.js";
import { setState } from "../core/router.js";

/**
 * @typedef {{name: string, label: string, help?: unknown, type?: string, value?: string, required?: boolean, options?: (string | [string, string])[]}} Field
 */

/** Draw a field: an input, a text area (`type: "text-area"`), a check box, or a list of `options`. @param {Field} field */
export function field({ name, label, help, type = "text", value = "", required = false, options }) {
  const id = `field-${name}`;
  const described = help === undefined ? nothing : `${id}-help`;
  const input = () => {
    if (options !== undefined) {
      return html`<select id=${id} name=${name} aria-describedby=${described} ?required=${required}>
        ${options.map((each) => {
          const [key, text] = typeof each === "string" ? [each, each] : each;
          return html`<option value=${key} ?selected=${key === value}>${text}</option>`;
        })}
      </select>`;
    }
    if (type === "text-area") {
      return html`<textarea id=${id} name=${name} rows="6" spellcheck="false" aria-describedby=${described} ?required=${required} .value=${value}></textarea>`;
    }
    if (type === "checkbox") {
      return html`<input id=${id} name=${name} type="checkbox" value="true" aria-describedby=${described} ?checked=${value === "true"} />`;
    }
    return html`<input id=${id} name=${name} type=${type} value=${value} aria-describedby=${described} autocomplete="off" ?required=${required} />`;
  };
  return html`<div class="field">
    <label for=${id}>${label}${required ? html` <span class="quiet">required</span>` : nothing}</label>
    ${input()} ${help === undefined ? nothing : html`<span class="quiet" id="${id}-help">${help}</span>`}
  </div>`;
}

/**
 * Return an entry of a menu. Without the action it is disabled, and says which right is missing and who can grant it.
 * @param {string} label @param {Set<string>} actions @param {string} action @param {string} where @param {() => unknown} run
 */
export function entry(label, actions, action, where, run) {
  return { label, allowed: actions.has(action), missing: `needs “${words(action)}” on ${where}; ask an administrator of ${where}`, run };
}

/** Draw the choice of a project, if there is more than one. @param {{"project-id": string, "project-name": string}[]} all @param {string} selected */
export function projectChoice(all, selected) {
  return choice("Project", all.map((each) => [each["project-id"], each["project-name"]]), selected, (project) => ({ project, warehouse: undefined }));
}

/** Draw the choice of a warehouse by its id. @param {any[]} rows @param {string} selected */
export function warehouseChoice(rows, selected) {
  return choice("Warehouse", rows.map((each) => [each["warehouse-id"], each.name]), selected, (warehouse) => ({ warehouse }));
}

/** @param {string} label @param {[string, string][]} options @param {string} selected @param {(value: string) => Record<string, string | undefined>} state */
function choice(label, options, selected, state) {
  if (options.length < 2) {
    return nothing;
  }
  const choose = (/** @type {Event} */ event) => setState(state(/** @type {HTMLSelectElement} */ (event.target).value));
  return html`<p class="choice"><label>${label} <select @change=${choose}>${options.map(([key, text]) => html`<option value=${key} ?selected=${key === selected}>${text}</option>`)}</select></label></p>`;
}

/** Return a text as a value in YAML: JSON is valid YAML. @param {unknown} value */
export function yaml(value) {
  return JSON.stringify(value);
}
