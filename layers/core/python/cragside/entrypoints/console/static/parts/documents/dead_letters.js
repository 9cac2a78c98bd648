// Work that was given up, with the reasons, and a button to try it again.
import { call } from "../../api.js";
import { mayWrite, notify, openDocument, workspace } from "../../state.js";
import { date, t } from "../../texts.js";
import { html, signal, useEffect } from "../../vendor/ui.js";
import { Failure } from "../basics.js";
import { focusSoon } from "../focus.js";
import { load } from "./listing.js";

const MOST = 20;
const dead = signal(null);
const names = signal(new Map());
const failure = signal(null);

export function DeadLetters() {
  useEffect(() => {
    dead.value = failure.value = null;
    loadDead();
  }, []);
  if (failure.value) return html`<${Failure} error=${failure.value} retry=${loadDead} />`;
  if (!dead.value?.dead) return null;
  const { letters, dead: count } = dead.value;
  return html`
    <details class="dead">
      <summary>${t("dead", { n: count })}</summary>
      <p>${t("dead.why")}</p>
      ${mayWrite.value && html`<button class="small" onClick=${() => revive()}>${t("dead.revive_all")}</button>`}
      <ul>${letters.map((each) => html`<${Letter} key=${each.id} letter=${each} />`)}</ul>
      ${count > letters.length && html`<p>${t("dead.more", { n: count - letters.length })}</p>`}
    </details>
  `;
}

function Letter({ letter }) {
  const { document_id, stage, reason, attempts, at } = letter;
  const name = names.value.get(document_id);
  return html`
    <li>
      ${name
        ? html`<button class="open" onClick=${() => openDocument(document_id)}><bdi>${name}</bdi></button>`
        : html`<bdi>${t(document_id.startsWith("mem-") ? "dead.memory" : "dead.document", { id: document_id })}</bdi>`}
      <span>${t(`dead.stage.${stage}`)}: ${reason}</span>
      <small>${t("dead.tried", { n: attempts })} · ${date(at)}</small>
      ${mayWrite.value &&
      html`
        <button class="small outline" aria-label=${t("dead.revive_one", { name: name ?? document_id })} onClick=${() => revive(document_id)}>
          ${t("dead.revive")}
        </button>
      `}
    </li>
  `;
}

export async function loadDead() {
  const place = workspace.value;
  try {
    const found = await call("GET", "v1/queue/dead", { query: { limit: MOST } });
    if (place !== workspace.value) return;
    failure.value = null;
    dead.value = found;
    await nameThem(found.letters);
  } catch (error) {
    if (place === workspace.value) failure.value = error;
  }
}

async function nameThem(letters) {
  const unknown = new Set(letters.map(({ document_id }) => document_id).filter((id) => id.startsWith("doc-") && !names.value.has(id)));
  for (const id of unknown) {
    const { label } = await call("GET", `v1/documents/${encodeURIComponent(id)}`).catch(() => ({}));
    if (label) names.value = new Map([...names.value, [id, label]]);
  }
}

async function revive(document_id, place = workspace.value) {
  try {
    const { tasks } = await call("POST", "v1/queue/revive", { body: { workspace: place, ...(document_id && { document_id }) } });
    notify(t("dead.revived", { n: tasks }));
  } catch (error) {
    notify(error.message, { kind: "error", action: { label: t("retry"), run: () => revive(document_id, place) } });
  }
  await Promise.all([loadDead(), load({ quiet: true })]);
  focusSoon(() => document.querySelector(".dead summary") ?? document.getElementById("list-title"));
}
