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
let leaving = null;
let latest = null;

// Another workspace has another memory.
export function enter() {
  if (place !== workspace.value) {
    place = workspace.value;
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

export const load = () => asking(async (signal) => {
  const query = { limit: PAGE, offset: page.value * PAGE };
  const found = await call("GET", "v1/memories", { query, signal });
  const last = Math.max(0, Math.ceil(found.total / PAGE) - 1);
  // The page vanished with its exchanges.
  if (page.value > last) return go(last);
  listing.value = found;
});

export const search = () => asking(async (signal) => {
  const query = question.value.trim();
  const found = await call("POST", "v1/memories/search", { body: { query, limit: PAGE }, signal });
  recalled.value = { query, ...found };
});

// Tries what failed.
export const tryAgain = () => asking(latest);

export function leaveSearch() {
  batch(() => {
    question.value = "";
    recalled.value = null;
  });
  return load();
}

async function asking(work) {
  latest = work;
  leaving?.abort();
  const own = (leaving = new AbortController());
  loading.value = true;
  failure.value = null;
  try {
    await work(own.signal);
  } catch (error) {
    if (!isAbort(error)) failure.value = error;
  } finally {
    if (leaving === own) loading.value = false;
  }
}
