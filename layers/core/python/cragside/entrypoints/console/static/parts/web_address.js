// Addresses in texts of others: one that is not of the web would run as a script, and one with a name before its host
// would pretend to be of another.
export function isWeb(address) {
  if (!URL.canParse(address ?? "")) return false;
  const url = new URL(address);
  return ["http:", "https:"].includes(url.protocol) && !url.username && !url.password;
}

// People see where a link leads.
export const hostOf = (address) => new URL(address).host;

// Browsers open a PDF at its page.
export const atPage = (url, page) => (page ? `${url.split("#")[0]}#page=${page}` : url);
