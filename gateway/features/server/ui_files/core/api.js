// SPDX-License-Identifier: Apache-2.0
// Requests to the API with the caller's token. Responses to GET are cached until the page changes something or is left,
// so that the parts of a page share them.

import { origin } from "./config.js";
import { SessionEnded, token } from "./session.js";

const SHARED = ["/management/v1/info", "/management/v1/whoami", "/management/v1/project-list", "/management/v1/server/actions"];
const HELD_MS = 60_000;

/** An error response of the API. `denial` is the id of the recorded denial, if the request was refused with one. */
export class ApiError extends Error {
  /** @param {number} status @param {string} message @param {string} type @param {string | null} id */
  constructor(status, message, type, id) {
    super(message);
    this.status = status;
    this.type = type;
    this.id = id;
    this.denial = /\/ui\?denial=([0-9a-f-]{36})/.exec(message)?.[1] ?? null;
  }
}

/**
 * @typedef {{method?: string, project?: string, body?: unknown, headers?: Record<string, string>}} More
 * @typedef {{method: string, path: string, project?: string, body?: unknown}} Sent
 */

/** @type {Map<string, {at: number, answer: Promise<any>}>} */
const held = new Map();
/** @type {Sent[]} */
let sent = [];

/** Return the requests of the current page, in the order in which they were sent. */
export function sentRequests() {
  return sent;
}

/** Forget the responses of the page that is left. Responses that all pages need are kept for a minute. */
export function leavePage() {
  sent = [];
  for (const [key, { at }] of held) {
    if (!SHARED.some((path) => key.startsWith(path + " ")) || Date.now() - at > HELD_MS) {
      held.delete(key);
    }
  }
}

/** End the session for the whole console, and for the caller of the request. @returns {never} */
function endSession() {
  window.dispatchEvent(new CustomEvent("session-ended"));
  throw new SessionEnded("Your sign-in has ended.");
}

/** @param {string} path @param {More} more */
async function send(path, { method = "GET", project, body, headers: further }) {
  // Browsers resolve `..`, also if it is encoded: a tag of a column with this name would be a tag of its table.
  if (new URL(path, origin).pathname !== path.split("?", 1)[0]) {
    throw new ApiError(0, "A part of this name is “.” or “..”, which addresses of the API cannot hold. Rename the object.", "Unaddressable", null);
  }
  /** @type {Record<string, string>} */
  const headers = { Authorization: "Bearer " + (token() ?? endSession()), Accept: "application/json", ...further };
  if (project !== undefined) {
    headers["x-project-id"] = project;
  }
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
  }
  sent.push({ method, path, project, body });
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "omit",
      redirect: "error",
      // The gateway's answers hold decisions of this moment: no other user of this browser may see them.
      cache: "no-store",
    });
  } catch {
    throw new ApiError(0, "The gateway does not answer. Check the connection and try again.", "Unreachable", null);
  }
  if (answer.status === 401) {
    endSession();
  }
  return answer;
}

/** @param {Response} answer */
async function parsed(answer) {
  const text = await answer.text();
  let found = null;
  try {
    found = text === "" ? null : JSON.parse(text);
  } catch {
    throw new ApiError(answer.status, "A server between this page and the gateway answered. Ask its operator.", "Foreign", null);
  }
  if (!answer.ok) {
    const { message = `The gateway returned status ${answer.status}.`, type = "Error" } = found?.error ?? {};
    throw new ApiError(answer.status, message, type, answer.headers.get("x-request-id"));
  }
  return found;
}

/**
 * Return the answer to a GET request.
 * @param {string} path
 * @param {{project?: string, headers?: Record<string, string>}} [more]
 * @returns {Promise<any>}
 */
export function get(path, more = {}) {
  const key = path + " " + (more.project ?? "");
  const known = held.get(key);
  if (known !== undefined) {
    return known.answer;
  }
  const answer = send(path, more).then(parsed);
  held.set(key, { at: Date.now(), answer });
  answer.catch(() => held.delete(key));
  return answer;
}

/**
 * Return the answer to a question that is sent by POST and changes nothing: a search, an explanation, a dry run.
 * @param {string} path
 * @param {unknown} body
 * @param {{project?: string}} [more]
 * @returns {Promise<any>}
 */
export async function ask(path, body, more = {}) {
  return parsed(await send(path, { ...more, method: "POST", body }));
}

/**
 * Send a change and return the answer. The cached responses are deleted.
 * @param {"POST" | "PUT" | "PATCH" | "DELETE"} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {{project?: string}} [more]
 * @returns {Promise<any>}
 */
export async function change(method, path, body, more = {}) {
  try {
    return await parsed(await send(path, { ...more, method, body }));
  } finally {
    held.clear();
  }
}

/** Forget all responses, after a sign-out. */
export function forgetAll() {
  held.clear();
  sent = [];
}

/** Return a path with encoded values: path`/management/v1/role/${id}`. */
export function path(/** @type {TemplateStringsArray} */ texts, /** @type {(string | number)[]} */ ...values) {
  return texts.reduce((whole, text, at) => whole + encodeURIComponent(String(values[at - 1])) + text);
}

/**
 * Return all pages of a list, up to `most` rows; `more` is True if there are further rows.
 * @param {string} first
 * @param {string} member
 * @param {{project?: string, most?: number}} [options]
 */
export async function pages(first, member, { project, most = 1000 } = {}) {
  const rows = [];
  let next = first;
  for (;;) {
    const answer = await get(next, { project });
    rows.push(...answer[member]);
    const pageToken = answer["next-page-token"];
    if (!pageToken || rows.length >= most) {
      return { rows, more: Boolean(pageToken) };
    }
    next = first + (first.includes("?") ? "&" : "?") + "pageToken=" + encodeURIComponent(pageToken);
  }
}
