// How far the additions are: each of a few, or a summary of many with what is going on and what went wrong.
import { number, t } from "../../texts.js";
import { html, signal, useRef } from "../../vendor/ui.js";
import { Failure } from "../basics.js";
import { focusSoon } from "../focus.js";
import { again, replace, resume, stop } from "./additions.js";
import { chosen } from "./dropped.js";
import { active, changes, clear, counts, held, items, problems, unfinished, unsent } from "./items.js";

// More than these are summarised.
const FEW = 12;
const MOST_ACTIVE = 6;
const MOST_PROBLEMS = 20;
// The statuses with which the service refuses a file for what it is.
const AT_FAULT = [400, 413, 415];
const allProblems = signal(false);

export function Progress() {
  void changes.value;
  if (!items.length) return null;
  const left = unfinished();
  const few = items.length <= FEW;
  const shown = few ? items : [...active].slice(0, MOST_ACTIVE);
  const wrong = few ? [] : [...problems];
  const most = allProblems.value ? wrong.length : MOST_PROBLEMS;
  return html`
    <section class="additions" aria-labelledby="additions-title">
      <h2 id="additions-title" tabindex="-1">${t("additions")}</h2>
      <progress max=${items.length} value=${items.length - left} aria-label=${t("additions")}></progress>
      <p>${summary()}</p>
      <p class="hidden" role="status">${announced(left)}</p>
      ${held.value && html`<${Failure} error=${held.value} retry=${resume} />`}
      ${shown.length > 0 && html`<ul>${shown.map((item) => html`<${Item} key=${item.id} item=${item} />`)}</ul>`}
      ${wrong.length > 0 &&
      html`
        <h3>${t("additions.problems", { n: wrong.length })}</h3>
        <ul>${wrong.slice(0, most).map((item) => html`<${Item} key=${item.id} item=${item} />`)}</ul>
        ${wrong.length > most &&
        html`<button class="small outline" onClick=${() => (allProblems.value = true)}>${t("additions.all_problems", { n: wrong.length })}</button>`}
      `}
      <div class="row">
        ${unsent() > 0 && html`<button class="small outline" onClick=${() => then(stop)}>${t("additions.stop")}</button>`}
        ${left === 0 && html`<button class="small outline" onClick=${() => then(clear)}>${t("additions.clear")}</button>`}
      </div>
    </section>
  `;
}

// The button that was pressed may vanish with what it did.
function then(work) {
  work();
  focusSoon(() => document.getElementById("additions-title") ?? document.getElementById("list-title"));
}

function summary() {
  const parts = [t("additions.done", { n: counts.done ?? 0, all: items.length })];
  for (const phase of ["waiting", "indexing", "refused", "failed", "stopped"]) {
    if (counts[phase]) parts.push(t(`additions.phase.${phase}`, { n: counts[phase] }));
  }
  return parts.join(" · ");
}

// Screen readers hear every tenth, not every file.
function announced(left) {
  const tenth = Math.floor((10 * (items.length - left)) / items.length);
  if (left) return t("additions.part", { percent: 10 * tenth });
  return summary();
}

function Item({ item }) {
  const state = item.state.value;
  const { phase, error } = state;
  return html`
    <li class=${`addition ${phase}`}>
      <bdi>${item.name}</bdi>
      <span>${told(item, state)}</span>
      ${phase === "sending" && html`<progress max="1" value=${state.part} aria-label=${item.name}></progress>`}
      ${phase === "indexing" && state.parts > 0 && html`<progress max=${state.parts} value=${state.embedded} aria-label=${item.name}></progress>`}
      ${error && html`<small>${error.message} ${remedy(error)}</small>`}
      ${item.unread && html`<small>${t("additions.unread", { what: item.unread })}</small>`}
      ${state.errors?.map(({ name, message }) => html`<small><bdi>${name}</bdi>: ${message}</small>`)}
      ${["refused", "stopped"].includes(phase) && html`<${Anew} item=${item} error=${error} />`}
    </li>
  `;
}

// The same file would be refused again, so another one can be chosen. A page or a repository may answer the next time.
function Anew({ item, error }) {
  const input = useRef(null);
  if (item.kind !== "file" || !AT_FAULT.includes(error?.status)) {
    return html`<button class="small outline" onClick=${() => then(() => again(item))}>${t("retry")}</button>`;
  }
  const take = (event) => {
    const { files } = chosen(event.target.files);
    event.target.value = "";
    if (files.length) then(() => replace(item, files));
  };
  return html`
    <button type="button" class="small outline" onClick=${() => input.current.click()}>${t("additions.choose")}</button>
    <input ref=${input} type="file" hidden multiple aria-label=${t("additions.choose")} onChange=${take} />
  `;
}

function told(item, state) {
  if (state.phase === "sending") return t("addition.sending", { percent: number(100 * state.part) });
  if (state.phase === "indexing" && state.parts) return t("addition.indexing.parts", { n: state.embedded, all: state.parts });
  if (state.phase === "cloning") return t("addition.cloning", { n: state.accepted, name: state.name });
  if (state.phase === "done" && item.kind === "repository") return t("addition.cloned", { n: state.accepted, refused: state.refused });
  if (state.phase === "done" && item.outcome === "unchanged") return t("addition.unchanged");
  return t(`addition.phase.${state.phase}`);
}

function remedy({ status }) {
  if (status === 413) return t("documents.remedy.413");
  if (status === 403) return t("documents.remedy.403");
  if (status === 503) return t("documents.remedy.503");
  return "";
}
