// What a route answers, for a component: {value, failure, loading, reload}. A change of `inputs` asks again and drops the old answer.
import { isAbort } from "../api.js";
import { useEffect, useState } from "../vendor/ui.js";

export function useLoaded(ask, inputs = []) {
  const [state, setState] = useState({ value: null, failure: null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const leaving = new AbortController();
    setState(({ value }) => ({ value, failure: null, loading: true }));
    ask(leaving.signal).then(
      (value) => setState({ value, failure: null }),
      (failure) => isAbort(failure) || setState(({ value }) => ({ value, failure })),
    );
    return () => leaving.abort();
  }, [...inputs, round]);
  return { ...state, reload: () => setRound((last) => last + 1), replace: (value) => setState({ value, failure: null }) };
}
