// Addresses in texts of others: one that is not of the web would run as a script.
export const isWeb = (url) => /^https?:\/\//i.test(url ?? "");

// Browsers open a PDF at its page.
export const atPage = (url, page) => (page ? `${url.split("#")[0]}#page=${page}` : url);
