// Deletes documents, or has them indexed again.
import { call } from "../../api.js";
import { notify, workspace } from "../../state.js";
import { t } from "../../texts.js";
import { refreshAccess } from "../access.js";
import { focusSoon, neighbour } from "../focus.js";
import { remove } from "../undo.js";
import { chosen, load } from "./listing.js";

export const pathOf = (id) => `v1/documents/${encodeURIComponent(id)}`;

export function removeDocuments(documents) {
  const rows = documents.map(({ id }) => `row-${id}`);
  const next = neighbour(rows, ".acts button:last-child", "list-title");
  const text = documents.length === 1 ? t("documents.deleted_one", { name: documents[0].label }) : t("documents.deleted", { n: documents.length });
  const done = async () => {
    await load({ quiet: true });
    await refreshAccess().catch(() => {});
  };
  const undone = () => focusSoon(() => document.querySelector(`#${CSS.escape(rows[0])} .open`));
  const hashes = new Map(documents.map(({ id, content_hash }) => [pathOf(id), content_hash]));
  remove([...hashes.keys()], { text, done, undone, again: true, hashes });
  const gone = new Set(documents.map(({ id }) => id));
  chosen.value = new Set([...chosen.value].filter((id) => !gone.has(id)));
  focusSoon(next);
}

// Failed or pending documents resume. Others are processed again from the start.
export async function reprocess(documents, place = workspace.value) {
  const left = [...documents];
  let tasks = 0;
  try {
    for (; left.length; left.shift()) {
      const [{ id, status }] = left;
      const force = !["failed", "pending"].includes(status);
      tasks += (await call("POST", `${pathOf(id)}/reprocess`, { query: { workspace: place, ...(force && { force }) } })).tasks;
    }
    notify(t("documents.reprocessed", { n: documents.length, tasks }));
  } catch (error) {
    notify(error.message, { kind: "error", action: { label: t("retry"), run: () => reprocess(left, place) } });
  }
  await load({ quiet: true });
}
