// SPDX-License-Identifier: Apache-2.0
// Ask about any object by its name. The answer is on the object's own page.

import { html, nothing } from "lit";

import { words } from "../core/format.js";
import { inAddress, projectOf } from "../core/objects.js";
import { parseName } from "../core/names.js";
import { Page } from "../core/page.js";
import { address, dotted, go } from "../core/router.js";
import { ACTIONS } from "../parts/explain-form.js";
import { title } from "../parts/heading.js";
import { objectField } from "../parts/object-field.js";
import { problem } from "../parts/problem.js";
import "../parts/principal-picker.js";

const QUESTIONS = { why: "May this person do it, and why?", "who-can": "Who can do it?" };

export default class ExplainPage extends Page {
  static properties = { ...Page.properties, wrong: { state: true } };

  constructor() {
    super();
    /** @type {unknown} */
    this.wrong = null;
  }

  /** @param {import("../core/router.js").Route} route */
  async load({ query }) {
    return { project: (await projectOf(query.project))?.["project-id"] };
  }

  /** @param {SubmitEvent} event @param {string | undefined} project */
  submit(event, project) {
    event.preventDefault();
    const { object = "", who = "", action = "", tab = "why" } = /** @type {any} */ (Object.fromEntries(new FormData(/** @type {HTMLFormElement} */ (event.target))));
    try {
      const { type, first, levels } = parseName(object);
      go(address(type, [encodeURIComponent(first), ...(levels.length > 0 ? [dotted(levels)] : [])], { project: inAddress(project), tab, who, action }));
    } catch (error) {
      this.wrong = error;
    }
  }

  /** @param {any} data */
  body({ project }) {
    const all = [...new Set(Object.values(ACTIONS).flat())];
    return html`${title("Why, and who can", "Ask about any object by its name, or choose “Why” on its page.")}
      <form class="question" @submit=${(/** @type {SubmitEvent} */ event) => this.submit(event, project)}>
        <div>${objectField("")}</div>
        <label>Question <select name="tab">${Object.entries(QUESTIONS).map(([name, text]) => html`<option value=${name}>${text}</option>`)}</select></label>
        <label>Action <select name="action">${all.map((each) => html`<option value=${each}>${words(each)}</option>`)}</select></label>
        <lg-principal-picker name="who" hint="you" optional .project=${project}></lg-principal-picker>
        <button type="submit" class="primary">Ask</button>
      </form>
      ${this.wrong === null ? nothing : problem(this.wrong)}`;
  }
}
