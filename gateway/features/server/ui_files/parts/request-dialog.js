// SPDX-License-Identifier: Apache-2.0
// Dialogs of a requester: choose privileges, see what they would open and who decides, and send the request.

import { html, nothing } from "lit";

import { ask, change, get } from "../core/api.js";
import { duration } from "../core/format.js";
import { idsOf } from "../core/objects.js";
import { openDialog } from "./dialog.js";
import { endField, secondsOf } from "./end-field.js";
import { privilegeBoxes, privilegesIn } from "./grant-dialog.js";
import { opening } from "./object-field.js";
import { principal } from "./small.js";

const REQUESTS = "/management/v1/access/requests";

/** Return an object of a page for a request. @param {import("../core/objects.js").Thing} on */
export function requestable(on) {
  return { type: on.type, ...idsOf(on) };
}

/** Draw what a dry run found. @param {any} tried */
function outcome(tried) {
  return html`${tried.items.map(
      (/** @type {any} */ item) => html`<section>
        <h3>${item.object.type.replaceAll("_", " ")} ${item.name}</h3>
        <p>Opens ${opening(item.opens)}.</p>
        <dl class="facts">
          ${item.privileges.map(
            (/** @type {any} */ each) => html`<dt>${each.privilege}</dt>
              <dd>${each.deciders === undefined || each.deciders === null
                ? html`decided by a principal with <code>${each["granted-with"]}</code>`
                : each.deciders.length === 0
                  ? html`no other principal can decide: ask an administrator of the project`
                  : html`decided by one of ${each.deciders.map((/** @type {any} */ who, /** @type {number} */ at) => html`${at > 0 ? ", " : nothing}${principal(who)}`)}${each.more ? " and others" : ""}`}</dd>`,
          )}
        </dl>
      </section>`,
    )}
    <p>The access ends ${duration(tried["duration-seconds"])} after the approval.</p>`;
}

/**
 * Ask for privileges on an object, show the dry run, and send the request. Returns the request, or null.
 * @param {Record<string, unknown>} object @param {string} name
 */
export async function openRequest(object, name) {
  const { privileges } = await get("/management/v1/grants/grantable-privileges");
  const all = (privileges[/** @type {string} */ (object.type)] ?? []).map((/** @type {any} */ privilege) => ({ privilege }));
  /** @type {any} */
  let body = null;
  /** @type {any} */
  let tried = null;
  const chosen = await openDialog({
    title: `Request access to ${name}`,
    action: "See what it would open",
    body: html`${privilegeBoxes(all, { allowed: () => true, missing: "" })}
      ${endField({ never: false })}
      <p><label>Reason <input name="reason" required maxlength="900" autocomplete="off" /></label></p>`,
    submit: async (values) => {
      body = { object, privileges: privilegesIn(values), reason: values.reason, "duration-seconds": secondsOf(values) };
      tried = await ask(`${REQUESTS}/dry-run`, body);
    },
  });
  /** @type {any} */
  let made = null;
  if (chosen) {
    await openDialog({ title: "What the request would open", action: "Send the request", body: outcome(tried), submit: async () => (made = await change("POST", REQUESTS, body)) });
  }
  return made;
}
