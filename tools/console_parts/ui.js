export { Fragment, h, render } from "preact";
export { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export { batch, computed, effect, signal, useComputed, useSignal } from "@preact/signals";
import htm from "htm";
import { h } from "preact";
export const html = htm.bind(h);
