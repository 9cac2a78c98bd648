// What was dropped or chosen, as files with their paths. Folders are walked; their files are opened when they are sent.

// The entries of a drop. They have to be taken before the event ends.
export function entriesOf(transfer) {
  return [...transfer.items]
    .filter(({ kind }) => kind === "file")
    .map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile())
    .filter(Boolean);
}

// Finds {name, open} in entries, and hands them on in groups. Answers how many hidden files and folders it left out, and
// how many folders the browser could not read.
export async function walk(entries, found) {
  let hidden = 0;
  let unread = 0;
  const folders = [];
  const files = [];
  const sort = (entry, top) => {
    if (!top && entry.name.startsWith(".")) hidden += 1;
    else if (entry instanceof File) files.push({ name: entry.name, open: async () => entry });
    else if (entry.isDirectory) folders.push(entry);
    else files.push({ name: entry.fullPath.replace(/^\//, ""), open: () => fileOf(entry) });
  };
  for (const entry of entries) sort(entry, true);
  found(files.splice(0));
  while (folders.length) {
    try {
      await read(folders.shift(), (some) => {
        for (const entry of some) sort(entry, false);
        found(files.splice(0));
      });
    } catch {
      unread += 1;
    }
  }
  return { hidden, unread };
}

// A reader gives a hundred entries at a time, and none at the end.
async function read(folder, take) {
  const reader = folder.createReader();
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return;
    take(some);
  }
}

// The files of an <input>. Those of a folder have their path in it.
export function chosen(list) {
  const all = [...list].map((file) => ({ name: file.webkitRelativePath || file.name, open: async () => file }));
  const seen = all.filter(({ name }) => !name.split("/").slice(1).some((part) => part.startsWith(".")));
  return { files: seen, hidden: all.length - seen.length };
}

const fileOf = (entry) => new Promise((resolve, reject) => entry.file(resolve, reject));
