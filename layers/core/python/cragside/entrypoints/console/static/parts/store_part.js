// The store of the workspace: its sizes, its embedding model, and how to build it anew.
import { events, isAbort } from "../api.js";
import { mayWrite, notify } from "../state.js";
import { bytes, number, t } from "../texts.js";
import { html, useState } from "../vendor/ui.js";
import { Dialog, Failure } from "./basics.js";

export function StorePart({ settings, reload }) {
  const { store, embedding_model: configured } = settings;
  const [asking, setAsking] = useState(false);
  const [progress, setProgress] = useState(null);
  const [failure, setFailure] = useState(null);
  const rebuild = async () => {
    setAsking(false);
    setFailure(null);
    setProgress({ done: 0, total: store.documents });
    try {
      for await (const { event, data } of events("POST", "v1/reindex", { body: {} })) {
        if (event === "progress") setProgress(data);
        if (event === "done") notify(t("store.rebuilt", { n: data.documents }));
      }
      reload();
    } catch (error) {
      if (!isAbort(error)) setFailure(error);
    }
    setProgress(null);
  };
  const differs = configured && store.embedding_model && configured !== store.embedding_model;
  return html`
    <section>
      <h2>${t("store")}</h2>
      ${store.reason && html`<p class="notice error">${store.reason}</p>`}
      <dl>
        ${["documents", "passages", "entities", "relations"].map(
          (name) => html`<dt>${t(`store.${name}`)}</dt><dd>${number(store[name])}</dd>`,
        )}
        ${store.bytes && html`<dt>${t("store.bytes")}</dt><dd>${bytes(store.bytes)}</dd>`}
        <dt>${t("store.embedding_model")}</dt>
        <dd>${store.embedding_model ?? t("store.no_model")}</dd>
      </dl>
      <p>${differs ? t("store.other_model", { configured, built: store.embedding_model }) : t("store.change_model")}</p>
      ${failure && html`<${Failure} error=${failure} />`}
      ${progress &&
      html`
        <label>
          ${t("store.rebuilding", { done: progress.done, total: progress.total })}
          <progress value=${progress.done} max=${Math.max(progress.total, 1)}></progress>
        </label>
      `}
      ${mayWrite.value && store.documents > 0 && !progress && html`<button class="outline small" onClick=${() => setAsking(true)}>${t("store.rebuild")}</button>`}
      ${asking &&
      html`
        <${Dialog} title=${t("store.rebuild")} close=${() => setAsking(false)}>
          <p>${t("store.cost", { n: store.passages, model: configured ?? store.embedding_model })}</p>
          <div class="row"><button onClick=${rebuild}>${t("store.rebuild_now")}</button></div>
        <//>
      `}
    </section>
  `;
}
