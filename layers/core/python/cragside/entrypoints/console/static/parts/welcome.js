// What somebody sees whose workspace is empty: what to do first, and documents to try it with.
import { call, isAbort } from "../api.js";
import { link, mayWrite, notify, workspace } from "../state.js";
import { t } from "../texts.js";
import { html, useEffect, useRef, useState } from "../vendor/ui.js";
import { refreshAccess } from "./access.js";
import { Failure, Waiting } from "./basics.js";
import { finish } from "./undo.js";
import { whyNoChange } from "./write_access.js";

const LOOKS = 240;
const LOOK_AGAIN_MS = 500;
const MOST_LISTED = 1000;

export function Welcome({ ask }) {
  const [samples, setSamples] = useState(null);
  const [state, setState] = useState("offered");
  const [failure, setFailure] = useState(null);
  const [done, setDone] = useState(0);
  const leaving = useRef(new AbortController());
  useEffect(() => {
    call("GET", "v1/samples", { shared: true }).then(setSamples, setFailure);
    return () => leaving.current.abort();
  }, []);
  const add = async () => {
    setState("adding");
    setFailure(null);
    const place = workspace.value;
    try {
      await finish(place);
      const { documents, errors } = await call("POST", "v1/samples", { body: { workspace: place } });
      for (const { name, message } of errors) notify(t("welcome.refused", { name, message }), { kind: "error" });
      await searchable(new Set(documents.map(({ id }) => id)), setDone, leaving.current.signal);
      notify(t("welcome.added", { n: documents.length }));
      setState("added");
    } catch (error) {
      if (isAbort(error)) return;
      setFailure(error);
      setState("offered");
    }
  };
  return html`
    <section class="welcome">
      ${state !== "added" && html`<h2>${t("welcome.title", { workspace: workspace.value })}</h2>`}
      <p>${state === "added" ? "" : mayWrite.value ? html`${t("welcome.first")} <a href=${link("documents")}>${t("welcome.documents")}</a>` : whyNoChange()}</p>
      ${failure && html`<${Failure} error=${failure} />`}
      ${state === "adding" && html`<${Waiting} text=${t("welcome.adding", { done, n: samples.documents })} />`}
      ${samples && state === "offered" && mayWrite.value && html`<button onClick=${add}>${t("welcome.try", { n: samples.documents })}</button>`}
      ${state === "added" &&
      html`
        <p>${t("welcome.ask")}</p>
        <ul>
          ${samples.questions.map(
            (each) => html`<li><button class="small outline" onClick=${() => (refreshAccess().catch(() => {}), ask(each))}>${each}</button></li>`,
          )}
        </ul>
      `}
    </section>
  `;
}

// Waits until the texts can be found. A worker takes them one after the other, unless none runs.
async function searchable(ids, tell, signal) {
  for (let look = 0; look < LOOKS; look += 1) {
    const { documents } = await call("GET", "v1/documents", { query: { status: "pending", limit: MOST_LISTED }, signal });
    const left = documents.filter(({ id }) => ids.has(id)).length;
    tell(ids.size - left);
    if (!left) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
  throw new Error(t("welcome.slow"));
}
