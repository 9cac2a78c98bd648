// Removes things at once for the eye, and from the service some seconds later, so that it can be undone.
import { call } from "../api.js";
import { notify, workspace } from "../state.js";
import { t } from "../texts.js";
import { signal } from "../vendor/ui.js";

const SECONDS = 6;
const AT_ONCE = 3;

// What panels leave out of their lists, as `keyOf` tells it.
export const removed = signal(new Set());
// Each is {paths, hashes, left, place, done, again, notice, sending}. `left` are the paths that the service did not answer yet.
const waiting = new Set();

export const keyOf = (path, place = workspace.value) => `${place} ${path}`;

// Removes what the paths stand for. `text` is shown meanwhile. `done` is called once the service was asked, `undone` if
// the removal is undone. `again`: show the paths again after the removal, because the same may be added later. `hashes`
// are those of the texts to remove, by path: what has changed meanwhile stays.
export function remove(paths, { text, done = () => {}, undone = () => {}, again = false, hashes = new Map() }) {
  const work = begun({ paths, hashes, place: workspace.value, done, again });
  work.notice = notify(text, {
    seconds: SECONDS,
    gone: () => send(work),
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

// Removes from the service what still waits in a workspace, before something is added: it may be the same again, and a
// removal after that would remove the new.
export async function finish(place) {
  const mine = [...waiting].filter((work) => work.place === place);
  for (const { notice } of mine) notice?.close();
  await Promise.all(mine.map(({ sending }) => sending));
}

function begun(work) {
  waiting.add(Object.assign(work, { left: new Set(work.paths) }));
  hide(work.paths, work.place);
  return work;
}

async function send(work) {
  if (work.sending || !waiting.has(work)) return;
  const { paths, hashes, place, done, again } = work;
  const unsent = [...paths];
  const failed = [];
  const repeatable = [];
  let failure = null;
  const sendSome = async () => {
    while (unsent.length) {
      const path = unsent.pop();
      try {
        await deleteNow(path, work);
      } catch (error) {
        failed.push(path);
        // A document that has changed would be refused again.
        if (error.status !== 400) repeatable.push(path);
        failure = error;
      }
      work.left.delete(path);
    }
  };
  work.sending = Promise.all(Array.from({ length: AT_ONCE }, sendSome));
  await work.sending;
  waiting.delete(work);
  show(failed, place);
  await done();
  if (again) show(paths, place);
  if (failure) {
    const retry = repeatable.length > 0 && { label: t("retry"), run: () => send(begun({ paths: repeatable, hashes, place, done, again })) };
    notify(t("undo.failed", { n: failed.length, reason: failure.message }), { kind: "error", action: retry });
  }
}

async function deleteNow(path, { place, hashes }, keepalive = false) {
  try {
    await call("DELETE", path, { query: { workspace: place, content_hash: hashes.get(path) }, keepalive });
  } catch (error) {
    // Somebody else removed it.
    if (error.status !== 404) throw error;
  }
}

// Who leaves the page does not undo any more.
addEventListener("pagehide", () => {
  for (const work of waiting) for (const path of work.left) deleteNow(path, work, true).catch(() => {});
  waiting.clear();
});

// A page that the browser kept still offers to undo what was deleted when it was left.
addEventListener("pageshow", (event) => event.persisted && location.reload());

function hide(paths, place) {
  removed.value = new Set([...removed.value, ...paths.map((path) => keyOf(path, place))]);
}

function show(paths, place) {
  const shown = new Set(paths.map((path) => keyOf(path, place)));
  removed.value = new Set([...removed.value].filter((key) => !shown.has(key)));
}
