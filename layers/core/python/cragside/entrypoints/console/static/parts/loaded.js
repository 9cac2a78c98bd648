// What a route answers, for a component: {value, failure, loading, reload, replace}. A change of `inputs` asks again and
// drops the old answer at once; `reload` keeps it until the new one is here.
import { isAbort } from "../api.js";
import { useEffect, useState } from "../vendor/ui.js";

export function useLoaded(ask, inputs = []) {
  const key = JSON.stringify(inputs);
  const [answer, setAnswer] = useState({ key: null, round: 0, value: null, failure: null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const leaving = new AbortController();
    ask(leaving.signal).then(
      (value) => setAnswer({ key, round, value, failure: null }),
      (failure) => isAbort(failure) || setAnswer((last) => ({ key, round, value: last.key === key ? last.value : null, failure })),
    );
    return () => leaving.abort();
  }, [key, round]);
  const known = answer.key === key;
  const latest = known && answer.round === round;
  return {
    value: known ? answer.value : null,
    failure: latest ? answer.failure : null,
    loading: !latest,
    reload: () => setRound((last) => last + 1),
    replace: (value) => setAnswer((last) => ({ ...last, value, failure: null })),
  };
}
