// The service counts characters in Unicode code points, JavaScript in UTF-16 units.

// The place in a text that `count` code points come before, from a place that is known already.
export function unitsAfter(text, count, from = 0) {
  let at = from;
  for (let left = count; left > 0 && at < text.length; left -= 1) at += text.codePointAt(at) > 0xffff ? 2 : 1;
  return at;
}

export const slice = (text, start, end) => {
  const first = unitsAfter(text, start);
  return [text.slice(0, first), text.slice(first, unitsAfter(text, end - start, first)), text.slice(unitsAfter(text, end - start, first))];
};
