// SPDX-License-Identifier: Apache-2.0
// How to reach a table from each engine: the exact configuration for this gateway.

import { html } from "lit";

import { origin } from "../core/config.js";
import { SNIPPETS } from "../core/snippets.js";
import { copyButton } from "./small.js";

/** Draw the configuration of each engine. @param {import("../core/objects.js").Thing} on */
export function connect(on) {
  const target = { catalog: origin + "/catalog", warehouse: on.warehouseName ?? "", namespace: on.namespace ?? [], name: on.name };
  return html`<p>Get a token with <code>lakegate login</code> and <code>lakegate token</code>, and keep it out of files that others read.</p>
    ${SNIPPETS.map(({ engine, text }, at) => {
      const content = text(target);
      return html`<details ?open=${at === 0} class="snippet">
        <summary>${engine}</summary>
        ${copyButton(content, `the configuration of ${engine}`)}
        <pre tabindex="0" id="snippet-${engine.toLowerCase()}">${content}</pre>
      </details>`;
    })}`;
}
