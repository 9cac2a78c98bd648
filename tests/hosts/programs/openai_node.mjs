// OpenAI's library for Node: chat, responses, completions.
import OpenAI from "openai";
import { ADDRESS, CITY, ENDLESS, FUEL, QUESTION, TOOL, pieces, some, tell, user } from "./telling.mjs";

const client = new OpenAI({ baseURL: `${ADDRESS}/v1`, apiKey: "none", maxRetries: 0 });
const chat = (more = {}) => client.chat.completions.create({ model: "m", messages: user(), ...more });
const respond = (more = {}) => client.responses.create({ model: "m", input: QUESTION, ...more });
const complete = (more = {}) => client.completions.create({ model: "m", prompt: QUESTION, ...more });
const form = { name: "fuel", schema: FUEL };
const tool = { type: "function", name: "weather", parameters: CITY, strict: false };
const said = (part) => part.choices[0]?.delta.content;
const delta = (event) => (event.type === "response.output_text.delta" ? event.delta : "");
const abort = async (stream, textOf) => some(stream, textOf, () => stream.controller.abort());

await tell({
  chat: async () => (await chat()).choices[0].message.content,
  stream: async () => pieces(await chat({ stream: true }), said),
  tools: async () => JSON.parse((await chat({ tools: [TOOL] })).choices[0].message.tool_calls[0].function.arguments),
  json: async () =>
    JSON.parse((await chat({ response_format: { type: "json_schema", json_schema: form } })).choices[0].message.content),
  abort: async () => abort(await chat({ messages: user(ENDLESS), stream: true }), said),
  error: () => chat({ model: "missing" }),
  responses: async () => (await respond()).output_text,
  responses_stream: async () => pieces(await respond({ stream: true }), delta),
  responses_tools: async () => JSON.parse((await respond({ tools: [tool] })).output[0].arguments),
  responses_json: async () =>
    JSON.parse((await respond({ text: { format: { type: "json_schema", ...form } } })).output_text),
  responses_abort: async () => abort(await respond({ input: ENDLESS, stream: true }), delta),
  responses_error: () => respond({ model: "missing" }),
  completions: async () => (await complete()).choices[0].text,
  completions_stream: async () => pieces(await complete({ stream: true }), (part) => part.choices[0]?.text),
  completions_error: () => complete({ model: "missing" }),
});
