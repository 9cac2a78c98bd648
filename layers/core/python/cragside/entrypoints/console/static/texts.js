// Texts in the reader's language, and numbers and dates as it writes them.
import { effect, signal } from "./vendor/ui.js";
import de from "./texts/de.js";
import en from "./texts/en.js";

const TEXTS = { en, de };
export const LANGUAGES = { en: "English", de: "Deutsch" };

const preferred = (navigator.languages ?? []).map((each) => each.slice(0, 2)).find((each) => each in TEXTS);
// An earlier or later version of the console may have kept a language that this one lacks.
const kept = localStorage.getItem("language");
export const language = signal(Object.hasOwn(TEXTS, kept) ? kept : (preferred ?? "en"));

effect(() => (document.documentElement.lang = language.value));

export function choose(chosen) {
  localStorage.setItem("language", chosen);
  language.value = chosen;
}

// The text of a key. {name} in it stands for a value; a text of {one, other} is chosen by `n`. Without a text it is the
// key, because a newer service may have values that this console does not know.
export function t(key, values = {}) {
  let text = TEXTS[language.value][key] ?? en[key] ?? key;
  if (typeof text === "object") text = text[new Intl.PluralRules(language.value).select(values.n)] ?? text.other;
  const shown = (value) => (typeof value === "number" ? number(value) : value);
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? shown(values[name]) : whole));
}

// Whether there is a text for a key, for codes of the service that may be newer than the console.
export const has = (key) => key in en;

export const number = (value, digits = 0) =>
  value.toLocaleString(language.value, { maximumFractionDigits: digits, minimumFractionDigits: digits });

export const score = (value) => (value === null || value === undefined ? "–" : number(value, 2));

export const date = (iso) =>
  iso ? new Date(iso).toLocaleString(language.value, { dateStyle: "medium", timeStyle: "short" }) : "";

export function bytes(count) {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte"];
  const power = Math.min(Math.floor(Math.log10(Math.max(count, 1)) / 3), units.length - 1);
  const style = { style: "unit", unit: units[power], unitDisplay: "short", maximumFractionDigits: power ? 1 : 0 };
  return (count / 1000 ** power).toLocaleString(language.value, style);
}
