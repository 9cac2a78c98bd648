// The settings of a workspace as a form. Nothing is saved until the button is pressed.
import { number, t } from "../texts.js";
import { html, useEffect, useRef, useState } from "../vendor/ui.js";
import { Failure } from "./basics.js";

// The numbers, and how finely each can be set.
const EVIDENCE = { threshold: 0.05, max_documents: 1 };
const SIMILARITY = { similarity_results: 1, similarity_threshold: 0.05 };
const CHUNKS = { chunk_tokens: 50, chunk_overlap_tokens: 10 };

// `save` answers whether the service took them. `refused` is the error if it did not.
export function SettingsForm({ settings, save, refused, locked }) {
  const [changes, setChanges] = useState({});
  const changed = Object.keys(changes).length > 0;
  const given = { ...settings, ...changes };
  const set = (name, value) => setChanges((last) => ({ ...last, [name]: value }));
  const numbers = (steps) =>
    Object.entries(steps)
      .filter(([name]) => name in settings.ranges)
      .map(([name, step]) => html`<${Slider} name=${name} step=${step} value=${given[name]} range=${settings.ranges[name]} set=${set} />`);
  const send = async (values) => {
    if (!(await save(values))) return;
    // What was changed meanwhile is still to be saved.
    setChanges((last) => Object.fromEntries(Object.entries(last).filter(([name, value]) => changes[name] !== value)));
  };
  const submit = (event) => {
    event.preventDefault();
    if (changed) send(changes);
  };
  const restore = () => send(Object.fromEntries(settings.changeable.map((name) => [name, null])));
  return html`
    <form onSubmit=${submit}>
      <fieldset disabled=${locked}>
        <h2>${t("settings.evidence")}</h2>
        <${Choices} name="mode" legend=${t("settings.mode")} text=${(mode) => t(`settings.mode.${mode}`)} values=${settings.modes} value=${given.mode} set=${set} />
        <${Choices}
          name="prompts"
          legend=${t("settings.prompts")}
          text=${(prompts) => t(`settings.prompts.${prompts}`)}
          values=${settings.prompt_choices}
          value=${given.prompts}
          set=${set}
        />
        ${numbers(EVIDENCE)}
        <label>
          ${t("settings.persona")}
          <select onChange=${(event) => set("persona", event.target.value)}>
            ${settings.personas.map(
              (name) => html`<option value=${name} selected=${name === (given.persona ?? "plain")}>${name === "plain" ? t("settings.no_persona") : name}</option>`,
            )}
          </select>
        </label>
        <h2>${t("settings.similarity")}</h2>
        <label>
          ${t("settings.strategy")}
          <select onChange=${(event) => set("similarity_strategy", event.target.value)}>
            ${settings.strategies.map(
              (name) => html`<option value=${name} selected=${name === given.similarity_strategy}>${t(`settings.strategy.${name}`)}</option>`,
            )}
          </select>
        </label>
        ${numbers(SIMILARITY)}
        <h2>${t("settings.chunks")}</h2>
        <p>${t("settings.chunks.when")}</p>
        ${numbers(CHUNKS)}
        <div class="row">
          <button type="submit" aria-disabled=${changed ? undefined : "true"}>${t("settings.save")}</button>
          <button type="button" class="outline" onClick=${restore}>${t("settings.restore")}</button>
        </div>
        ${refused && html`<${Refused} error=${refused} />`}
      </fieldset>
    </form>
  `;
}

// It stands below the buttons, so the page may have to move for it to be seen.
function Refused({ error }) {
  const place = useRef(null);
  useEffect(() => void place.current.scrollIntoView({ block: "nearest" }), [error]);
  return html`<div ref=${place}><${Failure} error=${error} /></div>`;
}

function Choices({ name, legend, text, values, value, set }) {
  return html`
    <fieldset>
      <legend>${legend}</legend>
      ${values.map(
        (each) => html`
          <label>
            <input type="radio" name=${name} value=${each} checked=${value === each} onChange=${() => set(name, each)} />
            ${text(each)}
          </label>
        `,
      )}
    </fieldset>
  `;
}

function Slider({ name, step, value, range, set }) {
  const digits = step < 1 ? 2 : 0;
  // A label names its first control, and an `output` is one. So the value is plain text.
  return html`
    <div>
      <label for=${`setting-${name}`}>${t(`settings.number.${name}`)}: ${number(value, digits)}</label>
      <input
        id=${`setting-${name}`}
        type="range"
        name=${name}
        min=${range.least}
        max=${range.most}
        step=${step}
        value=${value}
        onInput=${(event) => set(name, Number(event.target.value))}
      />
      <small>${t("settings.range", { least: number(range.least, digits), most: number(range.most, digits) })}</small>
    </div>
  `;
}
