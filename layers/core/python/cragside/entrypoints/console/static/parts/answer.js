// A model's answer while it is written, with links to its evidence. Citations that their passages do not support are marked.
import { call, isAbort } from "../api.js";
import { score, t } from "../texts.js";
import { html } from "../vendor/ui.js";
import { Failure } from "./basics.js";
import { slice } from "./code_points.js";

const CITATION = /(\[\d+\])/;

export function Answer({ answer, retry }) {
  if (!answer) return null;
  return html`
    <section class="answer" aria-busy=${answer.done ? "false" : "true"}>
      <h2>${t("answer")}</h2>
      <div class="text" aria-live="polite">${answer.citations ? checked(answer) : linked(answer.text)}</div>
      ${!answer.done && !answer.failure && html`<small role="status">${t("answer.writing")}</small>`}
      ${answer.failure && html`<${Failure} error=${answer.failure} retry=${retry} />`}
      ${answer.citations && html`<small>${summary(answer.citations)}</small>`}
      ${answer.unchecked && html`<small>${t("answer.unchecked", { reason: answer.unchecked })}</small>`}
    </section>
  `;
}

// Puts a model's answer into the signal `shown` while it comes, then has its citations checked.
export async function follow(shown, messages, candidates) {
  shown.value = { text: "", done: false };
  try {
    for await (const message of messages) {
      if (message.error) throw Object.assign(new Error(message.error), { status: 502 });
      shown.value = { ...shown.value, text: shown.value.text + (message.message?.content ?? "") };
    }
    shown.value = { ...shown.value, done: true };
  } catch (error) {
    shown.value = { ...shown.value, done: true, failure: isAbort(error) ? null : error };
    return;
  }
  const passages = candidates
    .filter(({ number }) => number)
    .map(({ number, content, title }) => ({ number, content, title }));
  if (!CITATION.test(shown.value.text)) return;
  try {
    const { citations } = await call("POST", "v1/citations", { shared: true, body: { answer: shown.value.text, passages } });
    shown.value = { ...shown.value, citations };
  } catch (error) {
    shown.value = { ...shown.value, unchecked: error.message };
  }
}

function linked(text) {
  return text.split(CITATION).map((part) => (CITATION.test(part) ? html`<${Link} number=${Number(part.slice(1, -1))} />` : part));
}

// The service tells where each citation stands.
function checked({ text, citations }) {
  const parts = [];
  let rest = text;
  let gone = 0;
  for (const citation of citations) {
    const [before, , after] = slice(rest, citation.start - gone, citation.end - gone);
    parts.push(before, html`<${Link} number=${citation.number} citation=${citation} />`);
    rest = after;
    gone = citation.end;
  }
  return [...parts, rest];
}

function Link({ number, citation }) {
  const doubtful = citation && !citation.supported;
  const told = doubtful ? t("answer.unsupported", { score: score(citation.score) }) : t("answer.open", { n: number });
  const open = (event) => {
    event.preventDefault();
    const card = document.getElementById(`evidence-${number}`);
    card?.scrollIntoView({ block: "center" });
    card?.focus();
  };
  return html`<a href=${`#evidence-${number}`} class=${doubtful ? "cite doubtful" : "cite"} title=${told} aria-label=${`[${number}] ${told}`} onClick=${open}>[${number}]${doubtful ? "?" : ""}</a>`;
}

function summary(citations) {
  const doubtful = citations.filter(({ supported }) => !supported).length;
  return doubtful ? t("answer.doubtful", { n: doubtful, all: citations.length }) : t("answer.all_supported", { n: citations.length });
}
