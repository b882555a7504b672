"""Answers SPARQL queries over a store on disk, one JSON line in, one out: the child of `RdfStore`.

Run as a script, without hopling, so that it starts fast. A query that never ends, or that aborts
the process, costs this process only.
"""

import json
import signal
import sys

import pyoxigraph


def answer(store: pyoxigraph.Store, query: str) -> dict[str, str]:
    """Return {"results": JSON text}, or why there are none under "refused" or "failed"."""
    try:
        results = store.query(query)
        if isinstance(results, pyoxigraph.QueryTriples):
            return {"refused": "it gives triples; write SELECT or ASK"}
        body = results.serialize(format=pyoxigraph.QueryResultsFormat.JSON)
    except SyntaxError as error:
        return {"refused": str(error)}
    except (OSError, RuntimeError, ValueError) as error:
        return {"failed": str(error)}
    return {"results": (body or b"").decode()}


def main() -> None:
    """Serve until standard input ends; a query is an object with "query" and "limit_s"."""
    store = pyoxigraph.Store.read_only(sys.argv[1])
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        # the parent kills a late child; this ends one whose parent was killed itself
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, request["limit_s"] + 1)
        reply = answer(store, request["query"])
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
