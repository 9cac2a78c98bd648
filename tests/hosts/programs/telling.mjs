// What the programs of the hosts share: the question, and how they tell what their library made of the answers.
export const ADDRESS = process.argv[2];
export const QUESTION = "/rag what does the lamp burn?";
export const ENDLESS = `${QUESTION} hang`;
const schema = (name) => ({ type: "object", properties: { [name]: { type: "string" } }, required: [name] });
export const CITY = schema("city");
export const FUEL = schema("fuel");
export const TOOL = {
  type: "function",
  function: { name: "weather", description: "Tells the weather.", parameters: CITY },
};
export const user = (content = QUESTION) => [{ role: "user", content }];

export async function pieces(stream, textOf) {
  const read = [];
  for await (const part of stream) {
    const text = textOf(part);
    if (text) read.push(text);
  }
  return read;
}

// How many pieces were read before `leave` was called.
export async function some(stream, textOf, leave) {
  let read = 0;
  try {
    for await (const part of stream) {
      if (textOf(part) && ++read === 2) leave();
      if (read === 2) break;
    }
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
  return read;
}

export async function tell(features) {
  const told = {};
  for (const [name, feature] of Object.entries(features)) {
    try {
      told[name] = await feature();
    } catch (error) {
      told[name] = `${error.name}: ${error.message}`;
    }
  }
  console.log(JSON.stringify(told));
}
