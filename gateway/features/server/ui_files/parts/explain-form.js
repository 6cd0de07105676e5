// SPDX-License-Identifier: Apache-2.0
// The question "may this person do this?" about one object: a form whose answer is an explanation.

import { LitElement, html, nothing } from "lit";

import { ask, get } from "../core/api.js";
import { words } from "../core/format.js";
import { questionOn } from "../core/objects.js";
import { drawExplanation } from "./explanation.js";
import { problem } from "./problem.js";
import { identityOf } from "./small.js";
import "./principal-picker.js";

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
      void this.explain({ who: this.who, action: this.action });
    }
  }

  /** @param {Record<string, string>} asked the values of the form */
  async explain(asked) {
    if (this.on === null) {
      return;
    }
    this.asked = asked;
    const { who = "", action, at = "", time = "", agent = "", address = "" } = asked;
    const circumstances = {
      ...(time === "" ? {} : { time: new Date(time).toISOString() }),
      ...(agent === "" ? {} : { "user-agent": agent }),
      ...(address === "" ? {} : { "client-address": address }),
    };
    try {
      this.answer = await ask("/management/v1/access/explain", {
        operation: questionOn(this.on, { action }),
        ...(who === "" ? {} : { identity: identityOf(who) }),
        ...(at === "" ? {} : { at: new Date(at).toISOString() }),
        ...(Object.keys(circumstances).length === 0 ? {} : { circumstances }),
      });
      this.failure = null;
    } catch (error) {
      this.failure = error;
      this.answer = null;
    }
  }

  /** @param {SubmitEvent} event */
  submit(event) {
    event.preventDefault();
    this.notice = "";
    void this.explain(/** @type {any} */ (Object.fromEntries(new FormData(/** @type {HTMLFormElement} */ (event.target)))));
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
        <lg-principal-picker name="who" .value=${this.who} hint="you" optional .project=${this.on?.project}></lg-principal-picker>
        <label>Action <select name="action">${actions.map((each) => html`<option value=${each} ?selected=${each === this.action}>${words(each)}</option>`)}</select></label>
        <label>Rights at <input name="at" type="datetime-local" title="Empty: now" /></label>
        <button type="submit" class="primary">Explain</button>
        <details>
          <summary>With other circumstances</summary>
          <label>Time of the request <input name="time" type="datetime-local" /></label>
          <label>Client (user agent) <input name="agent" autocomplete="off" /></label>
          <label>Address of the client <input name="address" autocomplete="off" placeholder="203.0.113.7" /></label>
        </details>
      </form>
      <p class="quiet">A user is written <code>user/oidc~name</code>, a role <code>role/its-id</code>.</p>
      <p role="status">${this.notice}</p>
      ${this.failure === null ? nothing : problem(this.failure)}
      ${this.answer === null ? nothing : drawExplanation(this.answer, { me: this.me, granted: (text) => this.granted(text) })}`;
  }
}

customElements.define("lg-explain-form", ExplainForm);
