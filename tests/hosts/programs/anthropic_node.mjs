// Anthropic's library for Node.
import Anthropic from "@anthropic-ai/sdk";
import { ADDRESS, CITY, ENDLESS, pieces, some, tell, user } from "./telling.mjs";

const client = new Anthropic({ baseURL: ADDRESS, apiKey: "none", maxRetries: 0 });
const ask = (more = {}) => client.messages.create({ model: "m", max_tokens: 64, messages: user(), ...more });
const delta = (event) => event.delta?.text;

await tell({
  chat: async () => (await ask()).content[0].text,
  stream: async () => pieces(await ask({ stream: true }), delta),
  tools: async () => (await ask({ tools: [{ name: "weather", input_schema: CITY }] })).content[0].input,
  abort: async () => {
    const stream = await ask({ messages: user(ENDLESS), stream: true });
    return some(stream, delta, () => stream.controller.abort());
  },
  error: () => ask({ model: "missing" }),
});
