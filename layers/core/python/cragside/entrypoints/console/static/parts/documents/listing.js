// The list of documents: what is asked for, and the page of it that is shown.
import { call, isAbort } from "../../api.js";
import { workspace } from "../../state.js";
import { batch, signal } from "../../vendor/ui.js";

export const PAGE = 50;
const TYPED_MS = 250;
const FIRST = { search: "", status: "", file_type: "", unread: "", sort: "added", order: "desc", page: 0 };
// Sorted by these, the highest comes first.
const DOWNWARDS = new Set(["added", "passages"]);

export const asked = signal(FIRST);
// What the search field says, which is asked for a moment later.
export const typed = signal("");
// {documents, total, file_types} and the workspace that it is of; null until it is known.
export const listing = signal(null);
export const loading = signal(false);
export const failure = signal(null);
export const chosen = signal(new Set());
let place = null;
let leaving = null;
let typing = 0;

// Another workspace has other documents.
export function enter() {
  if (place !== workspace.value) {
    place = workspace.value;
    batch(() => {
      asked.value = FIRST;
      typed.value = "";
      listing.value = null;
      chosen.value = new Set();
    });
  }
  return load();
}

export function ask(changed) {
  clearTimeout(typing);
  batch(() => {
    asked.value = { ...asked.value, page: 0, search: typed.value.trim(), ...changed };
    chosen.value = new Set();
  });
  return load();
}

// While somebody types, not every letter is a question.
export function askSoon(search) {
  typed.value = search;
  clearTimeout(typing);
  typing = setTimeout(() => ask({}), TYPED_MS);
}

export function sortBy(key) {
  const { sort, order } = asked.value;
  const first = DOWNWARDS.has(key) ? "desc" : "asc";
  const other = order === "asc" ? "desc" : "asc";
  return ask({ sort: key, order: sort === key ? other : first });
}

export const filtered = () => Boolean(asked.value.search || asked.value.status || asked.value.file_type || asked.value.unread);

export function unfiltered() {
  typed.value = "";
  return ask({ status: "", file_type: "", unread: "" });
}

// Whether an answer is still awaited.
export const asking = () => leaving !== null;

// Asks for the page anew. Quietly, what is shown stays until the answer is here, without a word.
export async function load({ quiet = false } = {}) {
  leaving?.abort();
  const own = (leaving = new AbortController());
  if (!quiet) loading.value = true;
  const { page, ...rest } = asked.value;
  try {
    const query = { ...rest, limit: PAGE, offset: page * PAGE };
    const found = await call("GET", "v1/documents", { query, signal: own.signal });
    const last = Math.max(0, Math.ceil(found.total / PAGE) - 1);
    // The page vanished with its documents.
    if (page > last) return await ask({ page: last });
    batch(() => {
      listing.value = found;
      failure.value = null;
    });
  } catch (error) {
    if (!isAbort(error)) failure.value = error;
  } finally {
    if (leaving === own) {
      leaving = null;
      loading.value = false;
    }
  }
}

// Whether anything on this page is still being worked on.
export const unsettled = () =>
  Boolean(
    listing.value?.documents.some(
      ({ status, enrichment }) => status === "pending" || ["pending", "processing", "mixed"].includes(enrichment),
    ),
  );
