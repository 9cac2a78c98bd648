// Follows how documents are indexed: a few by their events, and the rest by the list of documents that are not yet done.
import { call, events } from "../../api.js";
import { change, held } from "./items.js";

const STREAMS = 2;
const POLL_MS = 2000;
const AGAIN_MS = 1000;
const BUSY_MS = 5000;
const TRIES = 5;
const MOST_LISTED = 1000;

// The items whose documents are being indexed, in the order in which they were accepted.
export const followed = [];
const streamed = new Set();
let polling = false;

export function follow() {
  for (const item of followed) {
    if (streamed.size >= STREAMS || held.value) break;
    if (streamed.has(item)) continue;
    streamed.add(item);
    stream(item).finally(() => {
      streamed.delete(item);
      follow();
    });
  }
  if (!polling && followed.length > STREAMS) poll();
}

async function stream(item) {
  const path = `v1/documents/${encodeURIComponent(item.document)}/events`;
  const leaving = new AbortController();
  try {
    for (let refused = 0; followed.includes(item); ) {
      try {
        for await (const { event, data } of events("GET", path, { query: { workspace: item.workspace }, signal: leaving.signal })) {
          refused = 0;
          told(item, event, data);
          if (!followed.includes(item)) return;
        }
        // The host's time for a request was over (`later`), or the connection was.
        await pause(AGAIN_MS);
      } catch (error) {
        // Too many others follow documents.
        if (error.status !== 503 || (refused += 1) > TRIES) throw error;
        await pause(BUSY_MS);
      }
    }
  } catch (error) {
    // Others may be over soon: the store does not answer, or the service.
    if (error.status === 403 || error.type === "not_found") settle(item, { phase: "failed", error });
    else held.value = error;
  } finally {
    leaving.abort();
  }
}

function told(item, event, data) {
  if (!followed.includes(item)) return;
  if (data.status === "failed") return settle(item, { phase: "failed", error: { message: data.error } });
  if (data.status !== "pending") return settle(item, { phase: "done", passages: data.passages });
  change(item, { phase: "indexing", parts: data.parts, embedded: data.embedded_parts });
}

async function poll() {
  polling = true;
  try {
    while (followed.length > STREAMS && !held.value) {
      await pause(POLL_MS);
      for (const place of new Set(followed.map(({ workspace }) => workspace))) await look(place);
    }
  } catch (error) {
    held.value = error;
  } finally {
    polling = false;
  }
}

// Settles all items of a workspace that are no longer among its pending documents.
async function look(place) {
  const mine = followed.filter((item) => item.workspace === place && !streamed.has(item));
  if (!mine.length) return;
  const pending = await listed("pending", place);
  // Too many to see all. The streams go on meanwhile, and the worker makes them fewer.
  if (pending.total > pending.documents.length) return;
  const waiting = new Set(pending.documents.map(({ id }) => id));
  const settled = mine.filter(({ document }) => !waiting.has(document));
  const errors = settled.length ? await failures(place) : new Map();
  for (const item of settled) {
    const error = errors.get(item.document);
    settle(item, error === undefined ? { phase: "done" } : { phase: "failed", error: { message: error } });
  }
}

// The reasons of all documents that failed, by their ids.
async function failures(place) {
  const errors = new Map();
  for (let offset = 0; ; offset += MOST_LISTED) {
    const { documents, total } = await listed("failed", place, offset);
    for (const { id, error } of documents) errors.set(id, error);
    if (offset + documents.length >= total || !documents.length) return errors;
  }
}

const listed = (status, place, offset = 0) =>
  call("GET", "v1/documents", { query: { status, workspace: place, sort: "changed", limit: MOST_LISTED, offset } });

function settle(item, state) {
  const at = followed.indexOf(item);
  if (at < 0) return;
  followed.splice(at, 1);
  change(item, state);
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
