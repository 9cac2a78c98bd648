// Small parts that every panel uses.
import { t } from "../texts.js";
import { html, useEffect, useRef } from "../vendor/ui.js";

// Something takes a moment: says what.
export const Waiting = ({ text }) => html`<p role="status" aria-busy="true">${text}</p>`;

// Something failed: says what, what can be done, and offers to try again.
export function Failure({ error, retry }) {
  const remedy = error.status === 0 ? t("error.unreachable.remedy") : "";
  return html`
    <div class="notice error" role="alert">
      <span>${error.message} ${remedy}</span>
      ${retry && html`<button class="small" onClick=${retry}>${t("retry")}</button>`}
    </div>
  `;
}

// A modal window. `close` is called once somebody closed it, by Escape or its button, and has to take it away. Before
// that, the browser gives the focus back to what had it.
export function Dialog({ title, close, children, wide = false }) {
  const dialog = useRef(null);
  useEffect(() => {
    dialog.current.showModal();
  }, []);
  return html`
    <dialog ref=${dialog} class=${wide ? "wide" : ""} aria-label=${title} onClose=${close}>
      <article>
        <header>
          <button aria-label=${t("close")} rel="prev" onClick=${() => dialog.current.close()}></button>
          <h2>${title}</h2>
        </header>
        ${children}
      </article>
    </dialog>
  `;
}

// A number between 0 and 1 as a bar, with a line where the threshold is, unless that is null.
export function ScoreBar({ value, threshold, label }) {
  return html`
    <svg class="score" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label=${label}>
      <rect class="ground" width="100" height="8" />
      <rect class=${value > (threshold ?? 0) ? "enough" : "little"} width=${Math.max(0, value * 100)} height="8" />
      ${threshold !== null && html`<line x1=${threshold * 100} x2=${threshold * 100} y1="0" y2="8" />`}
    </svg>
  `;
}
