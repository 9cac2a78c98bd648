// Calls the routes of this service with the tab's token and workspace.
import { token, tokenRefused, tokenWanted, workspace } from "./state.js";
import { t } from "./texts.js";

// The console stands one level below the service, also behind a proxy with a path of its own.
const SERVICE = new URL("../", location.href.split("#")[0]);

export class ApiError extends Error {
  constructor(status, body) {
    const error = body?.error;
    super((typeof error === "object" ? error?.message : error) || t("error.status", { status }));
    this.status = status;
    this.type = error?.type;
  }
}

// The JSON that a route answers. `query` and `body` get the workspace unless `shared`. With `keepalive`, the request is
// sent although the page is left.
export async function call(method, path, { query = {}, body, shared = false, signal, keepalive = false } = {}) {
  const response = await send(method, path, { query, body, shared, signal, keepalive });
  return response.status === 204 ? null : received(response.json());
}

// The server-sent events of a route, as {event, data}, while they come. A failure after the answer began comes as an
// event; it is thrown with the status of the answer.
export async function* events(method, path, { query = {}, body, signal } = {}) {
  const headers = { Accept: "text/event-stream" };
  const response = await send(method, path, { query, body, headers, signal });
  for await (const block of blocks(response.body, /\r\n\r\n|\n\n|\r\r/)) {
    const fields = { event: "message", data: [] };
    for (const line of block.split(/\r\n|\n|\r/)) {
      const [, name, value] = line.match(/^(\w+): ?(.*)$/) ?? [];
      if (name === "event") fields.event = value;
      if (name === "data") fields.data.push(value);
    }
    if (!fields.data.length) continue;
    const data = parsed(fields.data.join("\n"));
    // A document that failed has its reason as text.
    if (fields.event === "failed" && data.error?.message) throw new ApiError(response.status, data);
    yield { event: fields.event, data };
  }
}

// The JSON values that a route of Ollama's streams, one a line. The service may remember the exchange, in the workspace.
export async function* lines(path, body, signal) {
  const headers = { "X-RAG-Workspace": workspace.value };
  const response = await send("POST", path, { body, shared: true, headers, signal });
  for await (const line of blocks(response.body, /\n/)) if (line.trim()) yield parsed(line);
}

// Sends a form of files, and tells how much of it is sent as 0..1. XMLHttpRequest can tell that, fetch can't.
export function upload(path, form, { query = {}, progress = () => {}, signal } = {}) {
  const used = token.value;
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const request = new XMLHttpRequest();
    request.open("POST", url(path, { workspace: workspace.value, ...query }));
    for (const [name, value] of Object.entries(authorisation())) request.setRequestHeader(name, value);
    request.responseType = "json";
    request.upload.onprogress = (event) => event.total && progress(event.loaded / event.total);
    request.onload = () => {
      if (request.status < 400) return resolve(request.response);
      if (request.status === 401) askForToken(used);
      reject(new ApiError(request.status, request.response));
    };
    request.onerror = () => reject(unreachable());
    request.onabort = () => reject(new DOMException("Stopped", "AbortError"));
    signal?.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}

// The address of a route, for people who copy it.
export function url(path, query = {}) {
  const found = new URL(path, SERVICE);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") found.searchParams.set(name, value);
  }
  return found.href;
}

export const isAbort = (error) => error?.name === "AbortError";

async function send(method, path, { query = {}, body, shared = false, headers = {}, signal, keepalive = false }) {
  const used = token.value;
  const place = shared ? {} : { workspace: workspace.value };
  const sent = { method, signal, keepalive, headers: { ...authorisation(), ...headers } };
  if (body !== undefined) {
    sent.headers["Content-Type"] = "application/json";
    sent.body = JSON.stringify({ ...place, ...body });
  }
  const response = await received(fetch(url(path, body === undefined ? { ...place, ...query } : query), sent));
  if (response.ok) return response;
  if (response.status === 401) askForToken(used);
  throw new ApiError(response.status, await response.json().catch(() => null));
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw unreachable(); // it broke off
  }
}

// What the service sends, unless the connection breaks off.
async function received(promise) {
  try {
    return await promise;
  } catch (error) {
    throw isAbort(error) ? error : unreachable();
  }
}

async function* blocks(stream, separator) {
  const decoder = new TextDecoderStream();
  const reader = stream.pipeThrough(decoder).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await received(reader.read());
      if (done) break;
      const parts = (rest + value).split(separator);
      rest = parts.pop();
      yield* parts;
    }
    if (rest.trim()) yield rest;
  } finally {
    reader.cancel().catch(() => {});
  }
}

function askForToken(used) {
  // Somebody gave another token meanwhile.
  if (used !== token.value) return;
  tokenWanted.value = true;
  tokenRefused.value = used !== "";
}

function authorisation() {
  return token.value ? { Authorization: `Bearer ${token.value}` } : {};
}

function unreachable() {
  return new ApiError(0, { error: { type: "unreachable", message: t("error.unreachable") } });
}
