// SPDX-License-Identifier: Apache-2.0
// Why a request was refused, and what would allow it. Links in refusals lead here.

import { html } from "lit";

import { get, path } from "../core/api.js";
import { Page } from "../core/page.js";
import { drawExplanation } from "../parts/explanation.js";
import { asCode, title } from "../parts/heading.js";
import { when } from "../parts/small.js";

export default class DenialPage extends Page {
  static properties = { ...Page.properties, notice: { state: true } };

  constructor() {
    super();
    this.notice = "";
  }

  /** @param {import("../core/router.js").Route} route */
  async load({ parts }) {
    const [denial, me] = await Promise.all([get("/management/v1/access/denials" + path`/${decodeURIComponent(parts[0] ?? "")}`), get("/management/v1/whoami")]);
    return { denial, me };
  }

  /** @param {any} data */
  body({ denial, me }) {
    return html`${title("Why a request was refused", html`<code>${denial.operation}</code>, ${when(denial.at)}`)}
      <p role="status">${this.notice}</p>
      ${drawExplanation(denial.explanation, { me: me.id, reasons: denial.reasons, granted: (text) => (this.notice = text) })}
      ${asCode()}`;
  }
}
