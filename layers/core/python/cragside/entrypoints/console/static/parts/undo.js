// Removes things at once for the eye, and from the service some seconds later, so that it can be undone.
import { call } from "../api.js";
import { notify, workspace } from "../state.js";
import { t } from "../texts.js";
import { signal } from "../vendor/ui.js";

const SECONDS = 6;
const AT_ONCE = 3;

// What panels leave out of their lists, as `keyOf` tells it.
export const removed = signal(new Set());
const waiting = new Set();

export const keyOf = (path, place = workspace.value) => `${place} ${path}`;

// Removes what the paths stand for. `text` is shown meanwhile; `done` is called once the service was asked, `undone` if
// somebody thought better of it.
export function remove(paths, { text, done = () => {}, undone = () => {} }) {
  const work = { paths, place: workspace.value };
  waiting.add(work);
  hide(work.paths, work.place);
  notify(text, {
    seconds: SECONDS,
    gone: () => send(work, done),
    action: {
      label: t("undo"),
      keys: t("undo.keys"),
      run: () => {
        waiting.delete(work);
        show(work.paths, work.place);
        undone();
      },
    },
  });
}

async function send(work, done) {
  if (!waiting.delete(work)) return;
  const left = [...work.paths];
  const failed = [];
  let failure = null;
  const sendSome = async () => {
    while (left.length) {
      const path = left.pop();
      try {
        await ask(path, work.place);
      } catch (error) {
        failed.push(path);
        failure = error;
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sendSome));
  show(failed, work.place);
  await done();
  if (failure) {
    const again = { label: t("retry"), run: () => retry(failed, work.place, done) };
    notify(t("undo.failed", { n: failed.length, reason: failure.message }), { kind: "error", seconds: 30, action: again });
  }
}

function retry(paths, place, done) {
  const work = { paths, place };
  waiting.add(work);
  hide(paths, place);
  return send(work, done);
}

async function ask(path, place, keepalive = false) {
  try {
    await call("DELETE", path, { query: { workspace: place }, keepalive });
  } catch (error) {
    // Somebody else removed it.
    if (error.status !== 404) throw error;
  }
}

// Who leaves the page does not undo any more.
addEventListener("pagehide", () => {
  for (const { paths, place } of waiting) for (const path of paths) ask(path, place, true).catch(() => {});
  waiting.clear();
});

function hide(paths, place) {
  removed.value = new Set([...removed.value, ...paths.map((path) => keyOf(path, place))]);
}

function show(paths, place) {
  const shown = new Set(paths.map((path) => keyOf(path, place)));
  removed.value = new Set([...removed.value].filter((key) => !shown.has(key)));
}
