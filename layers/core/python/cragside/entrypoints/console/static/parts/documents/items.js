// The things that are being added, and how far each is. It goes on while one looks at other panels.
import { workspace } from "../../state.js";
import { signal } from "../../vendor/ui.js";

const REDRAWN_AFTER_MS = 100;
const UNSENT = ["waiting", "sending", "reading", "cloning"];
const ACTIVE = ["sending", "reading", "cloning", "indexing"];

// A thousand items change thousands of times, so lists and counts are plain, and `changes` tells ten times a second.
export const items = [];
export const active = new Set();
export const problems = new Set();
export const counts = {};
export const changes = signal(0);
// The error that holds everything up until somebody tries again; null when all goes on.
export const held = signal(null);
let made = 0;
let redraw = 0;

export function newItem(fields) {
  const item = { id: (made += 1), workspace: workspace.value, state: signal({ phase: "none" }), ...fields };
  items.push(item);
  change(item, { phase: "waiting" });
  return item;
}

// Puts an item into a state, and keeps the counts.
export function change(item, state) {
  const before = item.state.value.phase;
  item.state.value = state;
  counts[before] = (counts[before] ?? 1) - 1;
  counts[state.phase] = (counts[state.phase] ?? 0) + 1;
  keep(active, item, ACTIVE.includes(state.phase));
  keep(problems, item, ["refused", "failed"].includes(state.phase) || state.errors?.length > 0 || Boolean(item.unread));
  redraw ||= setTimeout(() => {
    redraw = 0;
    changes.value += 1;
  }, REDRAWN_AFTER_MS);
}

export const unsent = () => UNSENT.reduce((sum, phase) => sum + (counts[phase] ?? 0), 0);

export const unfinished = () => unsent() + (counts.indexing ?? 0);

// Forgets what is done with.
export function clear() {
  items.length = 0;
  active.clear();
  problems.clear();
  for (const phase of Object.keys(counts)) delete counts[phase];
  changes.value += 1;
}

function keep(set, item, there) {
  if (there) set.add(item);
  else set.delete(item);
}

addEventListener("beforeunload", (event) => {
  if (unsent()) event.preventDefault();
});
