// SPDX-License-Identifier: Apache-2.0
// The question "may this person do this?" about one object: a form whose answer is an explanation.

import { LitElement, html, nothing } from "lit";

import { ask, get } from "../core/api.js";
import { words } from "../core/format.js";
import { questionOn } from "../core/objects.js";
import { drawExplanation } from "./explanation.js";
import { problem } from "./problem.js";
import { identityOf } from "./small.js";
import { SessionEnded } from "../core/session.js";

/** Actions by type of object, those that people ask about first. @type {Record<string, string[]>} */
export const ACTIONS = {
  table: ["read_data", "write_data", "get_metadata", "commit", "drop", "rename", "undrop", "set_protection", "read_assignments"],
  view: ["get_metadata", "commit", "drop", "rename", "include_in_list", "read_assignments"],
  "generic-table": ["read_data", "write_data", "get_metadata", "drop", "rename", "read_assignments"],
  namespace: ["get_metadata", "create_table", "create_view", "create_namespace", "list_everything", "update_properties", "delete", "read_assignments"],
  warehouse: ["use", "create_namespace", "list_namespaces", "get_metadata", "delete", "rename", "update_storage", "list_deleted_tabulars", "read_assignments"],
  project: ["get_metadata", "create_warehouse", "list_warehouses", "create_role", "rename", "delete", "read_assignments"],
  role: ["read", "update", "delete", "assume", "read_assignments"],
  tag: ["apply", "read", "update", "delete"],
  "data-policy": ["read", "update", "delete", "bind"],
};

/** Asks about `on`. `query` may name `who` and `action`, and then it asks at once. */
class ExplainForm extends LitElement {
  static properties = {
    on: { attribute: false },
    who: {},
    action: {},
    answer: { state: true },
    failure: { state: true },
    notice: { state: true },
    me: { state: true },
  };

  constructor() {
    super();
    /** @type {import("../core/objects.js").Thing | null} */
    this.on = null;
    this.who = "";
    this.action = "";
    /** @type {any} */
    this.answer = null;
    /** @type {unknown} */
    this.failure = null;
    this.notice = "";
    this.me = "";
  }

  createRenderRoot() {
    return this;
  }

  connectedCallback() {
    super.connectedCallback();
    void get("/management/v1/whoami").then((me) => (this.me = me.id));
    if (this.who !== "" && this.action !== "") {
      void this.explain({ who: this.who, action: this.action, at: "" });
    }
  }

  /** @param {{who: string, action: string, at: string}} asked */
  async explain({ who, action, at }) {
    if (this.on === null) {
      return;
    }
    this.asked = { who, action, at };
    try {
      this.answer = await ask("/management/v1/access/explain", {
        operation: questionOn(this.on, { action }),
        ...(who === "" ? {} : { identity: identityOf(who) }),
        ...(at === "" ? {} : { at: new Date(at).toISOString() }),
      });
      this.failure = null;
    } catch (error) {
      if (error instanceof SessionEnded) {
        this.dispatchEvent(new CustomEvent("session-ended", { bubbles: true }));
      }
      this.failure = error;
      this.answer = null;
    }
  }

  /** @param {SubmitEvent} event */
  submit(event) {
    event.preventDefault();
    this.notice = "";
    const { who = "", action = "", at = "" } = /** @type {any} */ (Object.fromEntries(new FormData(/** @type {HTMLFormElement} */ (event.target))));
    void this.explain({ who, action, at });
  }

  /** @param {string} notice */
  granted(notice) {
    this.notice = notice;
    if (this.asked !== undefined) {
      void this.explain(this.asked);
    }
  }

  render() {
    const actions = ACTIONS[this.on?.type ?? ""] ?? [];
    return html`<form class="question" @submit=${this.submit}>
        <label>Person or role <input name="who" .value=${this.who} placeholder="you" list="explain-people" autocomplete="off" /></label>
        <label>Action <select name="action">${actions.map((each) => html`<option value=${each} ?selected=${each === this.action}>${words(each)}</option>`)}</select></label>
        <label>At <input name="at" type="datetime-local" title="Empty: now" /></label>
        <button type="submit" class="primary">Explain</button>
      </form>
      <p class="quiet">A user is written <code>user/oidc~name</code>, a role <code>role/its-id</code>.</p>
      <p role="status">${this.notice}</p>
      ${this.failure === null ? nothing : problem(this.failure)}
      ${this.answer === null ? nothing : drawExplanation(this.answer, { me: this.me, granted: (text) => this.granted(text) })}`;
  }
}

customElements.define("lg-explain-form", ExplainForm);
