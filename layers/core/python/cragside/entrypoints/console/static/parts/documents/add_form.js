// Adds documents without a mouse, too: by choosing files or a folder, or by an address.
import { t } from "../../texts.js";
import { html, signal, useRef } from "../../vendor/ui.js";
import { addFiles, addPage, addRepository } from "./additions.js";
import { tellHidden } from "./drop_zone.js";
import { chosen } from "./dropped.js";
import { looksLikeRepository } from "./repository.js";

// What was typed stays when one looks at other panels.
const address = signal("");
const branch = signal("");
// Whether it is a repository, as somebody chose it; null while the address decides.
const choice = signal(null);

export function AddForm() {
  return html`
    <section class="add" aria-labelledby="add-title">
      <h2 id="add-title">${t("documents.add")}</h2>
      <p>${t("documents.add.how")}</p>
      <div class="row">
        <${FileButton} text=${t("documents.choose_files")} />
        <${FileButton} text=${t("documents.choose_folder")} folder />
      </div>
      <${AddressForm} />
    </section>
  `;
}

function FileButton({ text, folder = false }) {
  const input = useRef(null);
  const take = (event) => {
    const { files, hidden } = chosen(event.target.files);
    addFiles(files);
    tellHidden(hidden);
    // The same file may be chosen again.
    event.target.value = "";
  };
  return html`
    <button type="button" class="small" onClick=${() => input.current.click()}>${text}</button>
    <input ref=${input} type="file" hidden multiple webkitdirectory=${folder} aria-label=${text} onChange=${take} />
  `;
}

function AddressForm() {
  const repository = choice.value ?? looksLikeRepository(address.value);
  const submit = (event) => {
    event.preventDefault();
    const url = address.value.trim();
    if (repository) addRepository(url, branch.value.trim());
    else addPage(url);
    address.value = branch.value = "";
    choice.value = null;
  };
  return html`
    <form class="row address" onSubmit=${submit}>
      <label class="grow">
        ${t("documents.address")}
        <input
          type="url"
          required
          pattern="[hH][tT][tT][pP][sS]?://.+"
          title=${t("documents.address.form")}
          placeholder="https://"
          value=${address.value}
          onInput=${(event) => (address.value = event.target.value)}
        />
      </label>
      <label class="inline">
        <input type="checkbox" checked=${repository} onChange=${(event) => (choice.value = event.target.checked)} />
        ${t("documents.repository")}
      </label>
      ${repository &&
      html`
        <label>
          ${t("documents.branch")}
          <input value=${branch.value} placeholder=${t("documents.branch.default")} onInput=${(event) => (branch.value = event.target.value)} />
        </label>
      `}
      <button type="submit" class="small">${t("documents.add_address")}</button>
    </form>
  `;
}
