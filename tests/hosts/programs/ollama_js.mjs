// Ollama's library for JavaScript.
import { Ollama } from "ollama";
import { ADDRESS, ENDLESS, FUEL, QUESTION, TOOL, pieces, some, tell, user } from "./telling.mjs";

const client = new Ollama({ host: ADDRESS });
const ask = (more = {}) => client.chat({ model: "m", messages: user(), ...more });

await tell({
  chat: async () => (await ask()).message.content,
  generate: async () => (await client.generate({ model: "m", prompt: QUESTION })).response,
  stream: async () => pieces(await ask({ stream: true }), (part) => part.message.content),
  tools: async () => (await ask({ tools: [TOOL] })).message.tool_calls[0].function.arguments,
  json: async () => JSON.parse((await ask({ format: FUEL })).message.content),
  abort: async () => {
    const stream = await ask({ messages: user(ENDLESS), stream: true });
    return some(stream, (part) => part.message.content, () => stream.abort());
  },
  error: () => ask({ model: "missing" }),
});
