// Sends what is being added: files, pages and repositories, a few at a time.
import { ApiError, call, upload } from "../../api.js";
import { workspace } from "../../state.js";
import { t } from "../../texts.js";
import { refreshAccess } from "../access.js";
import { finish } from "../undo.js";
import { follow, followed } from "./following.js";
import { change, held, newItem } from "./items.js";
import { clone } from "./repository.js";

// Browsers open six connections to a service: some stay free for following, and for the list.
const AT_ONCE = 3;
const TRIES = 6;
const BUSY_SECONDS = 5;
const queue = [];
const sending = new Set();

export function addFiles(files, place = workspace.value) {
  for (const { name, open } of files) queue.push(newItem({ kind: "file", name, open, workspace: place }));
  pump();
}

export const addPage = (url) => again(newItem({ kind: "page", name: url, url }));

export const addRepository = (url, branch) => again(newItem({ kind: "repository", name: url, url, branch }));

// Sends an item, be it for the first time.
export function again(item) {
  queue.push(item);
  change(item, { phase: "waiting" });
  pump();
}

// Sends other files in place of one that was refused. They are of the folder that it was of.
export function replace(item, [{ name, open }, ...others]) {
  const folder = item.name.slice(0, item.name.lastIndexOf("/") + 1);
  Object.assign(item, { name: folder + name, open });
  again(item);
  addFiles(others.map((other) => ({ ...other, name: folder + other.name })), item.workspace);
}

// Goes on after what held everything up is over.
export function resume() {
  held.value = null;
  pump();
  follow();
}

// Drops what was not sent yet, and stops what is being sent.
export function stop() {
  for (const item of queue.splice(0)) change(item, { phase: "stopped" });
  for (const item of sending) item.leaving.abort();
  if (held.value) resume();
}

function pump() {
  while (sending.size < AT_ONCE && queue.length && !held.value) {
    const item = queue.shift();
    item.leaving = new AbortController();
    sending.add(item);
    send(item).finally(() => {
      sending.delete(item);
      pump();
      if (!sending.size && !queue.length) refreshAccess().catch(() => {});
    });
  }
}

async function send(item) {
  for (let tried = 1; ; tried += 1) {
    try {
      await finish(item.workspace);
      item.leaving.signal.throwIfAborted();
      await SENDERS[item.kind](item);
      return;
    } catch (thrown) {
      if (item.leaving.signal.aborted) return change(item, { phase: "stopped" });
      const error = await explained(item, thrown);
      if (error.status === 0 || error.status === 401) {
        queue.unshift(item);
        change(item, { phase: "waiting" });
        held.value = error;
        return;
      }
      if (error.status !== 503 || tried === TRIES) return change(item, { phase: "refused", error });
      await new Promise((resolve) => setTimeout(resolve, BUSY_SECONDS * 1000));
      if (item.leaving.signal.aborted) return change(item, { phase: "stopped" });
    }
  }
}

const SENDERS = {
  async file(item) {
    change(item, { phase: "sending", part: 0 });
    const form = new FormData();
    form.append("files", await opened(item), item.name);
    const progress = (part) => change(item, part < 1 ? { phase: "sending", part } : { phase: "reading" });
    const query = { workspace: item.workspace };
    accepted(item, await upload("v1/documents", form, { query, progress, signal: item.leaving.signal }));
  },
  async page(item) {
    change(item, { phase: "reading" });
    const body = { url: item.url, workspace: item.workspace };
    accepted(item, await call("POST", "v1/documents", { body, signal: item.leaving.signal }));
  },
  async repository(item) {
    change(item, { phase: "cloning", accepted: 0, refused: 0, name: "" });
    await clone(item, change);
  },
};

function accepted(item, { documents }) {
  const [{ id, outcome, unread, status, passages }] = documents;
  Object.assign(item, { document: id, outcome, unread });
  if (outcome === "unchanged" && status !== "pending") return change(item, { phase: "done", passages });
  change(item, { phase: "indexing", parts: 0, embedded: 0 });
  followed.push(item);
  follow();
}

// A file may be gone, or be one that the browser may not read.
async function opened(item) {
  try {
    return await item.open();
  } catch {
    throw new ApiError(400, { error: { message: t("documents.unreadable") } });
  }
}

// A browser does not tell a service that is away from a file that changed while it was sent. The service itself does.
async function explained(item, error) {
  if (error.status !== 0 || item.kind !== "file") return error;
  try {
    await call("GET", "healthz", { shared: true });
    return new ApiError(400, { error: { message: t("documents.unsendable") } });
  } catch {
    return error;
  }
}
