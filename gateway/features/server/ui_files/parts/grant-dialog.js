// SPDX-License-Identifier: Apache-2.0
// Dialogs that grant and revoke privileges on an object.

import { html, nothing } from "lit";

import { ApiError, change, get } from "../core/api.js";
import { managementPath, nameOf } from "../core/objects.js";
import { typed } from "../core/role-names.js";
import { openDialog } from "./dialog.js";
import { endField, endOf } from "./end-field.js";
import { identityOf, when } from "./small.js";
import "./principal-picker.js";

/** @typedef {import("../core/objects.js").Thing} Thing */

/** Return the options of a request about grants on an object. @param {Thing} on */
export function inProject(on) {
  return on.type === "project" ? { project: on.id } : {};
}

/** Return the privileges of an object; `allowed` says if the caller may grant them. @param {Thing} on @returns {Promise<any[]>} */
export async function privilegesOf(on) {
  return (await get(`${managementPath(on)}/grants/grantable-privileges`, inProject(on))).privileges;
}

/**
 * Draw checkboxes of privileges. `privilegesIn` reads them.
 * @param {any[]} privileges @param {{allowed: (each: any) => boolean, missing: string, chosen?: string[]}} options
 */
export function privilegeBoxes(privileges, { allowed, missing, chosen = [] }) {
  return html`<fieldset class="choices">
    <legend>Privileges</legend>
    ${privileges.map(
      (each) => html`<label class="choice">
        <input type="checkbox" name="privilege:${each.privilege.name}" ?checked=${chosen.includes(each.privilege.name)} ?disabled=${!allowed(each)} />
        <span><b>${each.privilege["display-name"]}</b> ${each.privilege.description ?? ""}${allowed(each) ? nothing : html` <i>${missing}</i>`}</span>
      </label>`,
    )}
  </fieldset>`;
}

/** Return the chosen privileges of a form. @param {Record<string, string>} values */
export function privilegesIn(values) {
  const chosen = Object.keys(values).filter((each) => each.startsWith("privilege:")).map((each) => each.slice("privilege:".length));
  if (chosen.length === 0) {
    throw new ApiError(0, "Choose at least one privilege.", "Incomplete", null);
  }
  return chosen;
}

/** Ask for grants on an object, and make them. Returns True if they were made. @param {Thing} on @param {any[]} privileges */
export function openGrant(on, privileges) {
  return openDialog({
    title: `Grant on ${nameOf(on)}`,
    action: "Grant",
    body: html`<p><lg-principal-picker .project=${on.project}></lg-principal-picker></p>
      ${privilegeBoxes(privileges, { allowed: (each) => each.allowed, missing: "You may not grant it: ask a principal that manages grants here." })}
      ${endField()}
      <p><label>Reason <input name="reason" maxlength="1000" autocomplete="off" /></label></p>`,
    submit: (values) => {
      const ends = endOf(values);
      const writes = privilegesIn(values).map((privilege) => ({
        privilege,
        principal: identityOf(values.principal),
        ...(values.reason === "" ? {} : { reason: values.reason }),
        ...(ends === null ? {} : { "expires-at": ends }),
      }));
      return change("POST", `${managementPath(on)}/grants`, { writes }, inProject(on));
    },
  });
}

/** Return the credentials for files that a principal holds here, or null if the caller may not read them.
 * @param {Thing} on @param {import("../core/role-names.js").Who} who @returns {Promise<any[] | null>} */
async function liveCredentials(on, who) {
  const ofObject = ["warehouse", "table", "generic-table"].includes(on.type) && who.user;
  const ofPrincipal = (who.user ? "principalUser=" + encodeURIComponent(who.user) : "principalRole=" + encodeURIComponent(who.role ?? "")) + "&pageSize=100";
  try {
    const answer = ofObject
      ? await get(`${managementPath(on)}/live-credentials?pageSize=100&user=${encodeURIComponent(who.user ?? "")}`)
      : await get(`/management/v1/live-credentials?${ofPrincipal}`, { project: on.project ?? (on.type === "project" ? on.id : undefined) });
    return answer["live-credentials"];
  } catch {
    return null;
  }
}

/** @param {any[] | null} live */
function consequence(live) {
  if (live === null) {
    return html`<p>Credentials for files that were issued before stay valid until they expire. You may not read which ones are live.</p>`;
  }
  if (live.length === 0) {
    return html`<p>No live credential for files is affected.</p>`;
  }
  const last = live.map((each) => each["live-until"]).sort().at(-1);
  return html`<p>${live.length === 1 ? "One live credential" : `${live.length} live credentials`} for files stay valid, the last one until ${when(last)}:</p>
    <ul>${live.slice(0, 10).map((each) => html`<li><code>${each.prefix}</code>, ${each.level}, until ${when(each["live-until"])}</li>`)}</ul>`;
}

/** Ask, and revoke a grant. Returns True if it was revoked. @param {Thing} on @param {any} grant @param {string} name the principal's name */
export async function openRevoke(on, grant, name) {
  const live = await liveCredentials(on, grant.principal);
  return openDialog({
    title: "Revoke a grant",
    action: "Revoke",
    danger: true,
    body: html`<p><b>${grant.privilege}</b> on <code>${nameOf(on)}</code> of ${name} <code>${typed(grant.principal)}</code> ends now. You can grant it again.</p>
      ${consequence(live)}`,
    submit: () => change("POST", `${managementPath(on)}/grants`, { deletes: [{ privilege: grant.privilege, principal: grant.principal }] }, inProject(on)),
  });
}
