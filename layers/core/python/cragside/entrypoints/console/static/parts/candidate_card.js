// A passage or web result that was considered as evidence: where it is from, its score, and why.
import { openDocument } from "../state.js";
import { has, score, t } from "../texts.js";
import { html, useEffect, useRef } from "../vendor/ui.js";
import { ScoreBar } from "./basics.js";
import { slice } from "./code_points.js";
import { atPage, hostOf, isWeb } from "./web_address.js";

// Above the marked strip.
const MARGIN_PIXELS = 16;

export function CandidateCard({ candidate }) {
  const { number, kept, needed, reasons } = candidate;
  const figure = figureOf(candidate);
  const quote = useRef(null);
  useEffect(() => {
    const mark = quote.current.querySelector("mark");
    if (mark) quote.current.scrollTop = mark.offsetTop - quote.current.offsetTop - MARGIN_PIXELS;
  }, [candidate]);
  return html`
    <article class=${`candidate ${kept ? "kept" : "dropped"}`} id=${number ? `evidence-${number}` : undefined} tabindex="-1">
      <header>
        <h3>${number ? `[${number}] ` : ""}${candidate.title || candidate.filename || candidate.url}</h3>
        <span class="badge">${t(`source.${candidate.source}`)}</span>
      </header>
      <p class="where">${placeOf(candidate)}</p>
      <${ScoreBar} value=${candidate.score ?? candidate.similarity ?? 0} threshold=${needed} label=${figure} />
      <p>
        <strong>${t(kept ? "candidate.kept" : `candidate.dropped.${candidate.dropped ?? "score"}`)}</strong>
        ${" "}${figure}
      </p>
      <blockquote class="text" ref=${quote} tabindex="0">${marked(candidate)}</blockquote>
      <dl>
        <dt>${t("candidate.words")}</dt>
        <dd>${reasons.words.length ? reasons.words.map((word) => html`<span class="word">${word}</span> `) : t("candidate.no_words")}</dd>
        ${reasons.read.length > 0 &&
        html`<dt>${t("candidate.read")}</dt>
          <dd>${reasons.read.map(({ asked, read }) => html`<span class="word">${asked} → ${read}</span> `)}</dd>`}
        <dt>${t("candidate.grader")}</dt>
        <dd>${reasons.grader === null ? t("candidate.ungraded") : graderName(reasons.grader)}</dd>
        ${reasons.judgement && html`<dt>${t("candidate.judge")}</dt><dd>${judgementOf(reasons.judgement)}</dd>`}
      </dl>
      ${candidate.document && html`<button class="small outline" onClick=${() => openDocument(candidate.document, candidate.id, reasons.strip)}>${t("candidate.open")}</button>`}
      ${isWeb(candidate.url) &&
      html`<a href=${atPage(candidate.url, candidate.page)} target="_blank" rel="noopener noreferrer">${t("candidate.visit")} (${hostOf(candidate.url)})</a>`}
    </article>
  `;
}

export const graderName = (grader) => (has(`grader.${grader}`) ? t(`grader.${grader}`) : grader);

const judgementOf = ({ model, answers, grade }) =>
  t("candidate.judged", { model, answers: score(answers), grade: score(grade) });

// In the mode `similarity`, passages have a similarity to the question in place of a score, and nothing is needed of them.
function figureOf({ score: graded, similarity, needed }) {
  if (graded === null && similarity !== null) return t("candidate.similarity", { similarity: score(similarity) });
  return t("candidate.score", { score: score(graded), needed: score(needed) });
}

export function placeOf({ filename, url, page, section, date, earlier_than: later }) {
  const earlier = later && t("candidate.earlier", { number: String(later) });
  return [filename ?? url, page && t("page", { page: String(page) }), section, date, earlier].filter(Boolean).join(" · ");
}

function marked({ content, reasons }) {
  if (!reasons.strip) return content;
  const [before, strip, after] = slice(content, reasons.strip.start, reasons.strip.end);
  return html`${before}<mark>${strip}</mark>${after}`;
}
