// Files and folders can be dropped anywhere on the page, whatever panel is shown.
import { link, mayWrite, notify, workspace } from "../../state.js";
import { t } from "../../texts.js";
import { html, signal, useEffect } from "../../vendor/ui.js";
import { whyNoChange } from "../write_access.js";
import { addFiles } from "./additions.js";
import { entriesOf, walk } from "./dropped.js";

// Longer than between two events of a drag over the page; browsers tell the end of a drag unreliably.
const OVER_MS = 500;
const dragged = signal(false);
let over = 0;

export function DropZone() {
  useEffect(() => {
    addEventListener("dragover", drag);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", drag);
      removeEventListener("drop", drop);
    };
  }, []);
  if (!dragged.value) return null;
  const text = mayWrite.value ? t("documents.drop_here", { workspace: workspace.value }) : whyNoChange();
  return html`<div class="drop" aria-hidden="true"><p>${text}</p></div>`;
}

const hasFiles = (event) => event.dataTransfer?.types.includes("Files");

function drag(event) {
  if (!hasFiles(event)) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = mayWrite.value ? "copy" : "none";
  dragged.value = true;
  clearTimeout(over);
  over = setTimeout(() => (dragged.value = false), OVER_MS);
}

function drop(event) {
  if (!hasFiles(event)) return;
  event.preventDefault();
  dragged.value = false;
  if (mayWrite.value) take(entriesOf(event.dataTransfer));
  else notify(whyNoChange(), { kind: "error" });
}

async function take(entries) {
  // Folders are read for a while, and meanwhile somebody may choose another workspace.
  const place = workspace.value;
  location.hash = link("documents");
  const { hidden, unread } = await walk(entries, (files) => addFiles(files, place));
  tellHidden(hidden);
  if (unread) notify(t("documents.unreadable_folder", { n: unread }), { kind: "error" });
}

export function tellHidden(hidden) {
  if (hidden) notify(t("documents.hidden", { n: hidden }));
}
