// Ask: a question runs through the graph before one's eyes. What was asked stays when one looks at other panels.
import { call, events, isAbort, lines, url } from "../api.js";
import { Failure, Waiting } from "../parts/basics.js";
import { Answer, follow } from "../parts/answer.js";
import { CandidateCard, graderName, placeOf } from "../parts/candidate_card.js";
import { Welcome } from "../parts/welcome.js";
import { access, link, notify, route, token, workspace } from "../state.js";
import { number, score, t } from "../texts.js";
import { batch, effect, html, signal, useEffect } from "../vendor/ui.js";

const question = signal("");
const steps = signal([]);
const explanation = signal(null);
const failure = signal(null);
const running = signal(null);
const answer = signal(null);
// Ollama's models; null until they are known.
const models = signal(null);
const model = signal("");
// The question of the address that was asked last, so that it is asked once.
let linked = null;
// What "Try again" repeats, whatever the fields say by then.
let asked = "";
let answering = "";

// Another workspace or token has other evidence.
effect(() => {
  void workspace.value;
  void token.value;
  forget();
});

export function Ask() {
  const wanted = route.value.query.get("q");
  useEffect(() => void findModels(), []);
  useEffect(() => {
    if (wanted && wanted !== linked) ask(wanted);
    linked = wanted;
  }, [wanted]);
  const here = access.value.workspaces.find(({ name }) => name === workspace.value);
  const submit = (event) => {
    event.preventDefault();
    if (question.value.trim()) ask(question.value);
  };
  const keys = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  };
  return html`
    <h1>${t("nav.ask")}</h1>
    ${here?.documents === 0 && html`<${Welcome} ask=${ask} />`}
    <form class="ask" onSubmit=${submit}>
      <label for="question">${t("ask.label")}</label>
      <textarea
        id="question"
        rows="2"
        required
        value=${question.value}
        placeholder=${t("ask.placeholder")}
        onInput=${(event) => (question.value = event.target.value)}
        onKeyDown=${keys}
      ></textarea>
      <div class="row">
        <button type="submit" disabled=${!question.value.trim()}>${t("ask.run")}</button>
        ${running.value && html`<button type="button" class="outline" onClick=${stop}>${t("ask.stop")}</button>`}
        <${ModelChoice} />
      </div>
    </form>
    <${Run} />
  `;
}

function ModelChoice() {
  if (!models.value?.length) return html`<small>${models.value ? t("ask.no_models") : ""}</small>`;
  return html`
    <label class="inline">
      ${t("ask.model")}
      <select onChange=${(event) => (model.value = event.target.value)}>
        <option value="" selected=${!model.value}>${t("ask.no_answer")}</option>
        ${models.value.map((name) => html`<option value=${name} selected=${name === model.value}>${name}</option>`)}
      </select>
    </label>
  `;
}

function Run() {
  const found = explanation.value;
  return html`
    <section aria-live="polite" aria-busy=${running.value ? "true" : "false"}>
      ${(steps.value.length > 0 || running.value) && html`<${Steps} />`}
      ${failure.value && html`<${Failure} error=${failure.value} retry=${() => ask(asked)} />`}
      ${found &&
      html`
        <p class=${`verdict ${found.verdict}`}>
          <strong>${t(`verdict.${found.verdict}`)}</strong>
          ${" "}${t("ask.took", { ms: found.processing_time_ms })}
          ${found.mode === "corrective" && ` ${t("ask.needed", { threshold: number(found.threshold, 2) })}`}
        </p>
        ${halved(found) !== null && html`<p>${t("ask.halved", { needed: number(halved(found), 2) })}</p>`}
        ${found.standalone_question && html`<p>${t("ask.standalone", { question: found.standalone_question })}</p>`}
        ${found.degraded.map(
          ({ component, reason }) =>
            html`<p class="notice warning">${["language", "parts"].includes(component) ? reason : t("ask.degraded", { component, reason })}</p>`,
        )}
      `}
    </section>
    ${found?.verdict === "none" && found.mode !== "off" && html`<${Closest} found=${found} />`}
    ${found && html`<${Answer} answer=${answer.value} retry=${() => write(found, answering)} /><${Prompt} found=${found} />`}
    ${found &&
    html`
      <h2>${t("ask.candidates", { n: found.candidates.length })}</h2>
      ${found.mode === "off" && html`<p><a href=${link("settings")}>${t("ask.off")}</a></p>`}
      <div class="cards">${found.candidates.map((each) => html`<${CandidateCard} key=${each.id} candidate=${each} />`)}</div>
    `}
  `;
}

// The nearest passages where none is evidence, and what to try.
function Closest({ found }) {
  const tries = ["ask.try.words", "ask.try.documents"];
  if (found.mode === "corrective" && !found.search_performed) tries.push("ask.try.web");
  return html`
    <section class="closest">
      ${found.closest.length > 0 &&
      html`
        <h2>${t("ask.closest")}</h2>
        <ol>
          ${found.closest.map(
            (each) => html`<li><strong>${each.title || each.id}</strong> ${score(each.score ?? each.similarity)} <small>${placeOf({ ...each.metadata, ...each })}</small></li>`,
          )}
        </ol>
      `}
      <p>${t("ask.try")}</p>
      <ul>${tries.map((each) => html`<li>${t(each)}</li>`)}</ul>
    </section>
  `;
}

// What sufficed because the web could not be asked; null if nothing less than the threshold did.
function halved({ candidates, threshold }) {
  const needed = candidates.find(({ source }) => source === "local")?.needed ?? threshold;
  return needed < threshold ? needed : null;
}

function Steps() {
  return html`
    <ol class="steps" aria-label=${t("ask.steps")}>
      ${steps.value.map(
        (step) => html`
          <li>
            <strong>${t(`step.${step.name}`)}</strong>
            <span>${said(step)}</span>
            <small>${t("ms", { ms: number(step.ms, step.ms < 10 ? 1 : 0) })}</small>
          </li>
        `,
      )}
      ${running.value && html`<li><${Waiting} text=${t("ask.running")} /></li>`}
    </ol>
  `;
}

function said(step) {
  if (step.name === "grade") return step.grader ? t("step.grade.by", { grader: graderName(step.grader) }) : t("step.grade.none");
  if (step.name === "decide") return t(`step.decide.${step.next}`);
  if (step.name === "rewrite") return `“${step.query}”`;
  if (step.name === "complete") return `“${step.question}”`;
  if (step.name === "recall") return t("step.recall.found", { n: step.exchanges });
  if (step.name === "search" && !step.searched) return t("step.search.none");
  return t("step.passages", { n: step.passages ?? 0 });
}

function Prompt({ found }) {
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      notify(t("ask.copied"));
    } catch {
      // Over plain http, browsers lend the clipboard to pages of this machine alone.
      notify(t("ask.not_copied"), { kind: "error" });
    }
  };
  const prompt = found.prompt ?? "";
  return html`
    <div class="row">
      <button class="small outline" onClick=${() => copy(prompt)}>${t("ask.copy_prompt")}</button>
      <button class="small outline" onClick=${() => copy(curl(found.question))}>${t("ask.copy_curl")}</button>
    </div>
    <details>
      <summary>${t("ask.prompt")}</summary>
      <pre tabindex="0">${prompt}</pre>
    </details>
  `;
}

async function ask(text) {
  const run = new AbortController();
  batch(() => {
    forget();
    question.value = asked = text;
    running.value = run;
  });
  try {
    for await (const { event, data } of events("POST", "v1/explain", { body: { prompt: text }, signal: run.signal })) {
      if (event === "step") steps.value = [...steps.value, data];
      if (event === "done") explanation.value = data;
    }
    if (!explanation.value) throw Object.assign(new Error(t("error.unreachable")), { status: 0 });
    if (model.value) await write(explanation.value, model.value, run);
  } catch (error) {
    if (running.value === run && !isAbort(error)) failure.value = error;
  } finally {
    if (running.value === run) running.value = null;
  }
}

function stop() {
  running.peek()?.abort();
  running.value = null;
}

function forget() {
  stop();
  batch(() => {
    question.value = "";
    steps.value = [];
    explanation.value = failure.value = answer.value = null;
  });
}

async function write(found, by, run = new AbortController()) {
  running.value = run;
  answering = by;
  const body = { model: by, messages: [{ role: "user", content: found.prompt }], stream: true };
  await follow(answer, lines("api/chat", body, run.signal), found.candidates, run.signal);
  if (running.value === run) running.value = null;
}

async function findModels() {
  try {
    const { models: found } = await call("GET", "api/tags", { shared: true });
    models.value = found.map(({ name }) => name);
  } catch {
    models.value = [];
  }
}

// The request as a command. It names the token's variable, so that no token is copied.
function curl(prompt) {
  const body = JSON.stringify({ prompt, workspace: workspace.value }).replaceAll("'", "'\\''");
  const header = token.value ? ' -H "Authorization: Bearer $RAG_API_TOKEN"' : "";
  return `curl${header} --json '${body}' '${url("v1/explain")}'`;
}
