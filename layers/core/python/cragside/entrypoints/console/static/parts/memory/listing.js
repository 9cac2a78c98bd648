// What was remembered, one page at a time, and what a search in it found.
import { call, isAbort } from "../../api.js";
import { workspace } from "../../state.js";
import { batch, signal } from "../../vendor/ui.js";

export const PAGE = 20;
export const page = signal(0);
// {memories, total}; null until it is known.
export const listing = signal(null);
export const question = signal("");
// What the last search found: {query, found}; null while the list is shown.
export const recalled = signal(null);
export const loading = signal(false);
export const failure = signal(null);
let place = null;
// What is under way. The list comes anew after each forgetting, which must not end a search.
const leaving = { list: null, search: null };
// What failed, as {kind, work}.
let failed = null;

// Another workspace has another memory.
export function enter() {
  if (place !== workspace.value) {
    place = workspace.value;
    end("search");
    batch(() => {
      page.value = 0;
      question.value = "";
      listing.value = recalled.value = null;
    });
  }
  return load();
}

export function go(to) {
  page.value = to;
  return load();
}

export const load = () => asking("list", async (signal) => {
  const query = { limit: PAGE, offset: page.value * PAGE };
  const found = await call("GET", "v1/memories", { query, signal });
  const last = Math.max(0, Math.ceil(found.total / PAGE) - 1);
  // The page vanished with its exchanges.
  if (page.value > last) return go(last);
  listing.value = found;
});

export const search = () => asking("search", async (signal) => {
  const query = question.value.trim();
  const found = await call("POST", "v1/memories/search", { body: { query, limit: PAGE }, signal });
  recalled.value = { query, ...found };
});

// Tries what failed.
export const tryAgain = () => asking(failed.kind, failed.work);

export function leaveSearch() {
  end("search");
  batch(() => {
    question.value = "";
    recalled.value = null;
  });
  return load();
}

// Stops what is under way of a kind, and forgets its failure.
function end(kind) {
  leaving[kind]?.abort();
  leaving[kind] = null;
  if (failed?.kind === kind) failed = failure.value = null;
}

async function asking(kind, work) {
  end(kind);
  const own = (leaving[kind] = new AbortController());
  loading.value = true;
  try {
    await work(own.signal);
  } catch (error) {
    if (!isAbort(error)) {
      failed = { kind, work };
      failure.value = error;
    }
  } finally {
    if (leaving[kind] === own) leaving[kind] = null;
    loading.value = Boolean(leaving.list || leaving.search);
  }
}
