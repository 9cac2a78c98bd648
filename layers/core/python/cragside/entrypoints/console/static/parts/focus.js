// Keeps the keyboard's place when what has the focus vanishes.

// What gets the focus once the elements with these ids are gone: the same button of the next one, else of the one
// before, else the element `otherwise`.
export function neighbour(ids, button, otherwise) {
  const gone = new Set(ids);
  const step = (way) => {
    let at = document.getElementById(ids[0]);
    while (at && gone.has(at.id)) at = at[way];
    return at?.id;
  };
  const beside = step("nextElementSibling") ?? step("previousElementSibling");
  return () => (beside && document.getElementById(beside)?.querySelector(button)) || document.getElementById(otherwise);
}

// After the page was drawn anew, unless somebody has moved the focus meanwhile. The last call counts: a deletion that is
// undone at once puts the focus on its own row, not on the next one.
let waiting = 0;
export function focusSoon(find) {
  clearTimeout(waiting);
  waiting = setTimeout(() => document.activeElement === document.body && find()?.focus(), 50);
}
