// The store of the workspace: its sizes, its embedding model, and how to build it anew.
import { mayWrite } from "../state.js";
import { bytes, number, t } from "../texts.js";
import { html, useEffect, useRef, useState } from "../vendor/ui.js";
import { Dialog, Failure } from "./basics.js";
import { focusSoon } from "./focus.js";
import { rebuild, rebuilds } from "./rebuild.js";

export function StorePart({ settings, reload }) {
  const { workspace, store, embedding_model: configured } = settings;
  const [asking, setAsking] = useState(false);
  const { failure, ...progress } = rebuilds.value[workspace] ?? {};
  const running = progress.total !== undefined;
  const ran = useRef(running);
  useEffect(() => {
    // The sizes are others now.
    if (ran.current && !running) reload();
    ran.current = running;
  }, [running]);
  const begin = (event) => {
    event.target.closest("dialog").close();
    rebuild(workspace, store.documents);
    focusSoon(() => document.getElementById("store-title"));
  };
  const differs = configured && store.embedding_model && configured !== store.embedding_model;
  return html`
    <section>
      <h2 id="store-title" tabindex="-1">${t("store")}</h2>
      ${store.reason && html`<p class="notice error">${store.reason}</p>`}
      <dl>
        ${["documents", "passages", "entities", "relations"].map(
          (name) => html`<dt>${t(`store.size.${name}`)}</dt><dd>${number(store[name])}</dd>`,
        )}
        ${store.bytes && html`<dt>${t("store.bytes")}</dt><dd>${bytes(store.bytes)}</dd>`}
        <dt>${t("store.embedding_model")}</dt>
        <dd>${store.embedding_model ?? t("store.no_model")}</dd>
      </dl>
      <p>${differs ? t("store.other_model", { configured, built: store.embedding_model }) : t("store.change_model")}</p>
      ${failure && html`<${Failure} error=${failure} />`}
      ${running &&
      html`
        <label>
          ${t("store.rebuilding", { done: progress.done, total: progress.total })}
          <progress value=${progress.done} max=${Math.max(progress.total, 1)}></progress>
        </label>
      `}
      ${mayWrite.value && store.documents > 0 && !running && html`<button class="outline small" onClick=${() => setAsking(true)}>${t("store.rebuild")}</button>`}
      ${asking &&
      html`
        <${Dialog} title=${t("store.rebuild")} close=${() => setAsking(false)}>
          <p>${t("store.cost", { n: store.passages, model: configured ?? store.embedding_model })}</p>
          <div class="row"><button onClick=${begin}>${t("store.rebuild_now")}</button></div>
        <//>
      `}
    </section>
  `;
}
