// SPDX-License-Identifier: Apache-2.0
// Break-glass activations that have ended and wait for a review by an auditor.

import { LitElement, html } from "lit";

import { change, get, path } from "../core/api.js";
import { openDialog } from "./dialog.js";
import { principal, when } from "./small.js";
import "./long-list.js";

const PATH = "/management/v1/access/break-glass";

class BreakGlassReviews extends LitElement {
  static properties = { source: { state: true } };

  constructor() {
    super();
    this.source = this.ended();
  }

  createRenderRoot() {
    return this;
  }

  /** Return a source of activations without a review. @returns {import("./long-list.js").Source} */
  ended() {
    return async (token) => {
      const answer = await get(`${PATH}?status=ended&pageSize=100${token === null ? "" : "&pageToken=" + encodeURIComponent(token)}`);
      return { rows: answer.activations, next: answer["next-page-token"] ?? null };
    };
  }

  /** @param {any} activation */
  async review(activation) {
    const reviewed = await openDialog({
      title: `Review ${activation.name}`,
      action: "Save the review",
      body: html`<p>${principal(activation.principal)} took ${activation.privileges.join(", ")} because “${activation.reason}”.</p>
        <p><label>Finding <textarea name="finding" required maxlength="900"></textarea></label></p>`,
      submit: ({ finding }) => change("POST", PATH + path`/${activation.id}/review`, { finding }),
    });
    if (reviewed) {
      this.source = this.ended();
    }
  }

  render() {
    /** @type {import("./long-list.js").Column[]} */
    const columns = [
      { label: "Person", draw: (each) => principal(each.principal) },
      { label: "Object", draw: (each) => each.name },
      { label: "Privileges", draw: (each) => each.privileges.join(", ") },
      { label: "Reason", draw: (each) => each.reason },
      { label: "Ended", draw: (each) => when(each["ended-at"] ?? each["ends-at"]), width: "minmax(15rem, 1fr)" },
      { label: "Review", draw: (each) => html`<button type="button" class="small" @click=${() => this.review(each)}>Review …</button>`, width: "7rem" },
    ];
    return html`<lg-long-list label="Activations without a review" .source=${this.source} .columns=${columns} .empty=${"No ended activation waits for a review that you may see."}></lg-long-list>`;
  }
}

customElements.define("lg-break-glass-reviews", BreakGlassReviews);
