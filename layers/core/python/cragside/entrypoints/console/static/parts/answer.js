// A model's answer while it is written, with links to its evidence. Citations that their passages do not support are marked.
import { call, isAbort } from "../api.js";
import { score, t } from "../texts.js";
import { html } from "../vendor/ui.js";
import { Failure } from "./basics.js";
import { slice } from "./code_points.js";

// As the service reads them: [1], [ 1 ] and [1, 2].
const MARK = /(\[\s?\d{1,4}(?:\s?[,;]\s?\d{1,4})*\s?\])/;

export function Answer({ answer, retry }) {
  if (!answer) return null;
  return html`
    <section class="answer" aria-busy=${answer.done ? "false" : "true"}>
      <h2>${t("answer")}</h2>
      <div class="text" aria-live="polite">${answer.citations ? checked(answer) : linked(answer.text)}</div>
      ${!answer.done && !answer.failure && html`<small role="status">${t("answer.writing")}</small>`}
      ${answer.failure && html`<${Failure} error=${answer.failure} retry=${retry} />`}
      ${answer.citations?.length > 0 && html`<small>${summary(answer.citations)}</small>`}
      ${answer.unchecked && html`<small>${t("answer.unchecked", { reason: answer.unchecked })}</small>`}
    </section>
  `;
}

// Puts a model's answer into the signal `shown` while it comes, then has its citations checked. Once something else is
// put there, this answer is over.
export async function follow(shown, messages, candidates, signal) {
  let own = (shown.value = { text: "", done: false });
  const show = (news) => {
    if (shown.value === own) own = shown.value = { ...own, ...news };
  };
  try {
    for await (const message of messages) {
      if (message.error) throw Object.assign(new Error(message.error), { status: 502 });
      show({ text: own.text + (message.message?.content ?? "") });
    }
    show({ done: true });
  } catch (error) {
    return show({ done: true, failure: isAbort(error) ? null : error });
  }
  const passages = candidates
    .filter(({ number }) => number)
    .map(({ number, content, title }) => ({ number, content, title }));
  if (!passages.length) return;
  try {
    const { citations } = await call("POST", "v1/citations", { shared: true, body: { answer: own.text, passages }, signal });
    show({ citations });
  } catch (error) {
    if (!isAbort(error)) show({ unchecked: error.message });
  }
}

function linked(text) {
  return text.split(MARK).flatMap((part) => (MARK.test(part) ? linkedMark(part) : part));
}

// In a list, each number is a link of its own.
function linkedMark(mark) {
  const numbers = mark.match(/\d+/g);
  if (numbers.length === 1) return html`<${Link} number=${Number(numbers[0])} text=${mark} />`;
  return mark.split(/(\d+)/).map((part) => (/\d/.test(part) ? html`<${Link} number=${Number(part)} text=${part} />` : part));
}

// The service tells where each citation stands.
function checked({ text, citations }) {
  const parts = [];
  let rest = text;
  let gone = 0;
  for (const citation of citations) {
    const [before, mark, after] = slice(rest, citation.start - gone, citation.end - gone);
    parts.push(before, html`<${Link} number=${citation.number} text=${mark} citation=${citation} />`);
    rest = after;
    gone = citation.end;
  }
  return [...parts, rest];
}

function Link({ number, text, citation }) {
  const doubtful = citation && !citation.supported;
  const told = doubtful ? t("answer.unsupported", { score: score(citation.score) }) : t("answer.open", { n: number });
  const open = (event) => {
    event.preventDefault();
    const card = document.getElementById(`evidence-${number}`);
    card?.scrollIntoView({ block: "center" });
    card?.focus();
  };
  return html`<a href=${`#evidence-${number}`} class=${doubtful ? "cite doubtful" : "cite"} title=${told} aria-label=${`${text} ${told}`} onClick=${open}>${text}${doubtful ? "?" : ""}</a>`;
}

function summary(citations) {
  const doubtful = citations.filter(({ supported }) => !supported).length;
  return doubtful ? t("answer.doubtful", { n: doubtful, all: citations.length }) : t("answer.all_supported", { n: citations.length });
}
