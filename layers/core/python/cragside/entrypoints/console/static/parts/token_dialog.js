// Asks for the service's token. It is kept for the tab alone.
import { token, tokenRefused } from "../state.js";
import { t } from "../texts.js";
import { html, useState } from "../vendor/ui.js";
import { Dialog } from "./basics.js";

// Browsers put no other characters into a header.
const SENDABLE = /^[\x20-\xff]+$/;

export function TokenDialog({ close }) {
  const [text, setText] = useState("");
  const refused = tokenRefused.value;
  const enter = (event) => {
    event.preventDefault();
    tokenRefused.value = !SENDABLE.test(text.trim());
    if (tokenRefused.value) return;
    // The same value would change nothing, so a second try goes by the empty one.
    if (token.value === text.trim()) token.value = "";
    token.value = text.trim();
  };
  return html`
    <${Dialog} title=${t("token.title")} close=${close}>
      <form onSubmit=${enter}>
        <p>${t("token.why")}</p>
        <label>
          ${t("token.label")}
          <input
            type="password"
            required
            autofocus
            autocomplete="off"
            value=${text}
            onInput=${(event) => setText(event.target.value)}
            aria-invalid=${refused ? "true" : undefined}
            aria-describedby="token-refused"
          />
        </label>
        <small id="token-refused" role="alert">${refused ? t("token.refused") : ""}</small>
        <button type="submit">${t("token.enter")}</button>
      </form>
    <//>
  `;
}
