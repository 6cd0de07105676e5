// SPDX-License-Identifier: Apache-2.0
// Live credentials: who holds keys for files, for which object, and until when. A store does not ask the gateway, so a
// credential ends by its expiry. The right behind it can be ended here, so that no further one is issued.

import { html, nothing } from "lit";

import { change, get, path } from "../core/api.js";
import { time } from "../core/format.js";
import { openDialog } from "./dialog.js";
import "./long-list.js";
import { principal, when } from "./small.js";

/** How the credentials of a store can be stopped before they expire. @type {Record<string, string>} */
const EARLIER = {
  s3: "On AWS, attach this policy to the role of the warehouse (sts-role-arn). A compatible store may not support it.",
  gcs: "Tokens cannot be revoked one by one: deleting the service account's key or its rights ends all tokens of the bucket.",
  adls: "“az storage account revoke-delegation-keys” ends all signatures of the account; the gateway makes new keys within 15 minutes.",
};

/** Privileges that are selected at first: those that are about data alone. */
const DATA = new Set(["select", "modify"]);

/** Return a source of live credentials. @param {string} list path with or without a query @param {string} [project] */
export function liveCredentials(list, project) {
  const first = list + (list.includes("?") ? "&" : "?") + "pageSize=200";
  return async (/** @type {string | null} */ token) => {
    const answer = await get(first + (token === null ? "" : "&pageToken=" + encodeURIComponent(token)), { project });
    return { rows: answer["live-credentials"], next: answer["next-page-token"] ?? null };
  };
}

/** Return an IAM policy that stops the sessions of a holder that exist now. @param {any} credential */
function stopPolicy(credential) {
  const condition = { DateLessThan: { "aws:TokenIssueTime": new Date().toISOString() }, StringLike: { "aws:userid": [`*:${credential["session-name"]}`] } };
  return JSON.stringify({ Version: "2012-10-17", Statement: [{ Sid: "StopSessions", Effect: "Deny", Action: "*", Resource: "*", Condition: condition }] }, null, 2);
}

/** Return the grants of a holder that may be behind a credential: those on the table and on the warehouse. @param {any} credential */
async function grantsBehind(credential) {
  const inside = path`/management/v1/warehouse/${credential["warehouse-id"]}`;
  const table = credential["table-id"];
  const places = [inside, ...(table ? [inside + path`/table/${table}`] : [])];
  // A deleted table has no grants left, and the caller may not read them everywhere.
  const lists = await Promise.all(places.map((place) => get(place + path`/grants?principalUser=${credential.principal}&pageSize=100`).catch(() => ({ grants: [] }))));
  return lists.flatMap(({ grants }, at) => grants.map((/** @type {any} */ each) => ({ privilege: each.privilege, type: each.resource.type, place: places[at] })));
}

/** Ask which rights to end, and end them. @param {any} credential */
async function end(credential) {
  const grants = await grantsBehind(credential);
  const user = credential.principal;
  return openDialog({
    title: "End credentials",
    action: grants.length === 0 ? "Close" : "Revoke the selected grants",
    danger: grants.length > 0,
    body: html`<p><strong>${user}</strong> holds a credential (${credential.level}) for <code>${credential.prefix}</code>. It is valid until ${time(credential["live-until"])}.
        The store does not ask the gateway, so it ends then. Without the right, no further one is issued.</p>
      ${grants.length === 0
        ? html`<p>${user} has no grant of its own on the table or the warehouse that you may see. Look at the roles and the grants of the user.</p>`
        : html`<fieldset><legend>Grants of ${user}</legend>
            ${grants.map((each, at) => html`<div class="check"><label><input type="checkbox" name=${String(at)} value="true" ?checked=${DATA.has(each.privilege)} /> ${each.privilege} on ${each.type}</label></div>`)}
          </fieldset>`}
      <details><summary>Stop it at the store before that</summary>
        <p>${EARLIER[credential.provider] ?? "This store offers no way to stop one credential."}</p>
        ${credential.provider === "s3" ? html`<pre tabindex="0">${stopPolicy(credential)}</pre>` : nothing}
      </details>`,
    submit: async (values) => {
      for (const place of new Set(grants.map((each) => each.place))) {
        const deletes = grants.filter((each, at) => each.place === place && values[String(at)]).map(({ privilege }) => ({ privilege, principal: { user } }));
        if (deletes.length > 0) {
          await change("POST", `${place}/grants`, { deletes });
        }
      }
    },
  });
}

/**
 * Draw a list of live credentials.
 * @param {unknown} source as from `liveCredentials`
 * @param {(notice: string) => void} changed called after rights were ended
 */
export function credentialList(source, changed) {
  const ended = (/** @type {any} */ each) => changed(`Done. The credentials that ${each.principal} holds are valid until ${time(each["live-until"])} at the latest, and are not renewed without a right.`);
  const columns = [
    { label: "Holder", draw: (/** @type {any} */ each) => html`${principal({ user: each.principal })}${each.engine ? html` by ${each.engine}` : nothing}` },
    { label: "May", draw: (/** @type {any} */ each) => each.level },
    { label: "Files", draw: (/** @type {any} */ each) => html`<code title=${each.prefix}>${each.prefix}</code>`, width: "minmax(10rem, 2fr)" },
    { label: "Issued", draw: (/** @type {any} */ each) => when(each["issued-at"]), width: "minmax(12rem, 1.3fr)" },
    { label: "Valid until", draw: (/** @type {any} */ each) => when(each["live-until"]), width: "minmax(12rem, 1.3fr)" },
    {
      label: "Action",
      draw: (/** @type {any} */ each) => html`<button type="button" class="small" @click=${() => void end(each).then((done) => done && ended(each))}>End</button>`,
      width: "6rem",
    },
  ];
  return html`<lg-long-list label="Live credentials" .source=${source} .columns=${columns} .empty=${"No credential is valid any more."}></lg-long-list>`;
}
