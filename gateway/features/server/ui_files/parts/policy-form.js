// SPDX-License-Identifier: Apache-2.0
// The form of a data policy: a mask by fields, and each definition as JSON.

import { LitElement, html, nothing } from "lit";

import { ApiError } from "../core/api.js";
import { words } from "../core/format.js";
import { MASKS, definitionText } from "./policy-words.js";

/** First definitions to change. @type {Record<string, any>} */
const STARTS = {
  mask: { kind: "mask", action: "mask-alphanum", columns: [{ name: "email" }] },
  "rows by value": { kind: "row-filter", test: { type: "compare", operator: "eq", column: { name: "region" }, value: "eu" } },
  "rows by mapping table": { kind: "row-filter", test: { type: "in", column: { name: "region" }, values: { type: "attribute", source: "mapping", name: "regions" } } },
  "rows by role": { kind: "row-filter", test: { type: "has-role", role: "" } },
};

/** Draw a select of masks. @param {string} selected @param {(action: string) => unknown} [changed] */
export function maskSelect(selected, changed = () => undefined) {
  return html`<label>Mask
    <select name="action" @change=${(/** @type {Event} */ event) => changed(/** @type {HTMLSelectElement} */ (event.target).value)}>
      ${Object.entries(MASKS).map(([action, text]) => html`<option value=${action} ?selected=${action === selected}>${words(action)}: ${text}</option>`)}
    </select></label>`;
}

/** The definition in a form: its value is the field `definition`, as JSON. */
class PolicyForm extends LitElement {
  static properties = { definition: { attribute: false }, text: { state: true } };

  constructor() {
    super();
    /** @type {any} */
    this.definition = STARTS.mask;
    this.text = "";
  }

  createRenderRoot() {
    return this;
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (changed.has("definition")) {
      this.text = JSON.stringify(this.definition, null, 2);
    }
  }

  /** Return the typed definition, or null if it is no JSON. */
  get parsed() {
    try {
      return JSON.parse(this.text);
    } catch {
      return null;
    }
  }

  /** @param {any} definition */
  set(definition) {
    this.text = JSON.stringify(definition, null, 2);
  }

  /** @param {Event} event */
  columns(event) {
    const columns = /** @type {HTMLInputElement} */ (event.target).value.split(",").map((each) => each.trim()).filter((each) => each !== "");
    this.set({ ...this.parsed, columns: columns.map((each) => (each.startsWith("tag:") ? { tag: each.slice(4) } : { name: each })) });
  }

  /** @param {any} parsed */
  fields(parsed) {
    if (parsed?.kind !== "mask") {
      return nothing;
    }
    const columns = (parsed.columns ?? []).map((/** @type {any} */ each) => (each.tag ? `tag:${each.tag}` : each.name)).join(", ");
    return html`<p>${maskSelect(parsed.action, (action) => this.set({ ...parsed, action }))}</p>
      <p><label>Columns, or tags as <code>tag:pii</code> <input .value=${columns} @change=${this.columns} autocomplete="off" /></label></p>`;
  }

  render() {
    const parsed = this.parsed;
    return html`<p><label>Begin with
          <select @change=${(/** @type {Event} */ event) => this.set(STARTS[/** @type {HTMLSelectElement} */ (event.target).value] ?? parsed)}>
            <option value="">this definition</option>
            ${Object.keys(STARTS).map((each) => html`<option value=${each}>${each}</option>`)}
          </select></label></p>
      ${this.fields(parsed)}
      <p><label>Definition as JSON
          <textarea name="definition" rows="9" spellcheck="false" .value=${this.text} @input=${(/** @type {Event} */ event) => (this.text = /** @type {HTMLTextAreaElement} */ (event.target).value)}></textarea></label></p>
      <p class="quiet" aria-live="polite">${parsed === null ? "This is no JSON yet." : parsed.kind ? definitionText(parsed) : ""}</p>`;
  }
}

customElements.define("lg-policy-form", PolicyForm);

/** Draw the fields of a policy. @param {any} [policy] the policy to change */
export function policyFields(policy) {
  return html`<p><label>Name <input name="name" required .value=${policy?.name ?? ""} autocomplete="off" /></label></p>
    <p><label>Description <input name="description" .value=${policy?.description ?? ""} autocomplete="off" /></label></p>
    <lg-policy-form .definition=${policy?.definition ?? STARTS.mask}></lg-policy-form>
    <p><label>Applies to
        <select name="applies">
          <option value="everyone" ?selected=${policy?.["applies-to"] !== "subjects"}>everyone without an exemption</option>
          <option value="subjects" ?selected=${policy?.["applies-to"] === "subjects"}>holders of the privilege “subject” only</option>
        </select></label></p>
    <label class="choice"><input type="checkbox" name="append" ?checked=${policy?.["allow-append"] === true} /> <span>Restricted principals may append rows</span></label>`;
}

/** Return the body of a request from the values of `policyFields`. @param {Record<string, string>} values */
export function policyBody(values) {
  let definition;
  try {
    definition = JSON.parse(values.definition);
  } catch {
    throw new ApiError(0, "The definition is no JSON. Correct it, or begin with a template.", "Incomplete", null);
  }
  return {
    name: values.name,
    definition,
    "applies-to": values.applies,
    "allow-append": values.append !== undefined,
    ...(values.description === "" ? {} : { description: values.description }),
  };
}
