"""Episodes in files: our own rows, and what other programs read.

`messages` is OpenAI's chat form, `sharegpt` is LLaMA-Factory's, `inspect_log` is what
`inspect view` shows. All three are made from the turns, not from any chat template, so an episode
looks the same whatever dialect it was played in; only our own rows keep tokens.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from hopling import records
from hopling.episode import Call, Ending, Episode, Turn
from hopling.errors import DataError

Row = dict[str, Any]
Scorer = Callable[[Episode], float]

_LIMITS = {Ending.OUT_OF_TURNS: "turn", Ending.CUT: "token", Ending.CONTEXT_FULL: "context"}
_STOPS = {Ending.CUT: "max_tokens", Ending.CONTEXT_FULL: "model_length"}


def read_episodes(path: Path) -> list[Episode]:
    """Return the episodes of a file that `write_episodes` or a run wrote.

    Raises DataError when the file is absent or a row is no episode.
    """
    if not path.exists():
        raise DataError(f"{path} is not there; expected a file of episodes.")
    episodes = []
    for number, row in enumerate(records.read(path), 1):
        try:
            episodes.append(Episode.from_json(row))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{path}, row {number} is no episode ({type(error).__name__}: {error}); expected "
                "what Episode.to_json gives."
            ) from error
    return episodes


def write_episodes(path: Path, episodes: Iterable[Episode]) -> None:
    """Write the episodes, one row each, with their tokens."""
    _write_rows(path, (episode.to_json() for episode in episodes))


def write_messages(path: Path, episodes: Iterable[Episode]) -> None:
    """Write one `messages` row for each episode."""
    _write_rows(path, map(messages, episodes))


def write_sharegpt(path: Path, episodes: Iterable[Episode]) -> None:
    """Write one `sharegpt` row for each episode."""
    _write_rows(path, map(sharegpt, episodes))


def messages(episode: Episode) -> Row:
    """Return the episode as OpenAI messages and tools; `arguments` are JSON text, as there.

    An assistant's content is what stands around its calls. What a policy read about a malformed
    turn comes as the user's message, since there is no call to reply to.
    """
    rows = _opening(episode)
    for number, turn in enumerate(episode.turns):
        content = _around_calls(turn)
        rows.append({"role": "assistant", "content": content or None})
        named = [
            (f"call_{number}_{place}", call)
            for place, call in enumerate(turn.actions)
            if isinstance(call, Call)
        ]
        if named:
            rows[-1]["tool_calls"] = [_tool_call(id, call) for id, call in named]
        rows += _replies(number, turn)
    tools = [_whole_schema(tool) for tool in episode.tools]
    return {"messages": rows, **({"tools": tools} if tools else {})}


def sharegpt(episode: Episode) -> Row:
    """Return the episode in ShareGPT's form, in which the policy speaks at every second place.

    Calls stand as a JSON object, several as a JSON list; what stands around them comes before, in
    think tags, since LLaMA-Factory keeps nothing else there. The replies to several calls are one
    observation, a blank line between two. What no turn of the policy follows is left out.
    """
    said: list[Row] = [{"from": "human", "value": episode.prompt.user}]
    for turn in episode.turns:
        if turn.calls:
            said.append({"from": "function_call", "value": _written_calls(turn)})
        else:
            said.append({"from": "gpt", "value": turn.text})
        who = "observation" if turn.calls else "human"
        said.append({"from": who, "value": "\n\n".join(o.text for o in turn.observations)})
    row: Row = {"conversations": said[:-1]}
    if episode.prompt.system:
        row["system"] = episode.prompt.system
    if episode.tools:
        tools = [_whole_schema(tool)["function"] for tool in episode.tools]
        row["tools"] = json.dumps(tools, ensure_ascii=False)
    return row


def write_inspect(
    path: Path,
    episodes: Sequence[Episode],
    *,
    task: str,
    model: str,
    created: str,
    scorers: Mapping[str, Scorer],
) -> None:
    """Write the log that `inspect view` shows; the path ends in `.json`."""
    if path.suffix != ".json":
        raise DataError(f"{path} does not end in .json; inspect view would not read it.")
    log = inspect_log(episodes, task=task, model=model, created=created, scorers=scorers)
    records.write_json(path, log)


def inspect_log(
    episodes: Sequence[Episode],
    *,
    task: str,
    model: str,
    created: str,
    scorers: Mapping[str, Scorer],
) -> Row:
    """Return the episodes as an Inspect log (EvalLog, version 2).

    `created` is a time in ISO 8601 with its zone. The nth episode of a task is its nth epoch. An
    unscored episode carries its reason as the sample's error and has no scores.
    """
    copies: Counter[str] = Counter()
    samples = []
    for episode in episodes:
        copies[episode.task.id] += 1
        samples.append(_sample(episode, copies[episode.task.id], model, scorers))
    id = sha256(f"{task}/{model}/{created}".encode()).hexdigest()[:22]
    dataset = {"name": task, "samples": len(copies), "sample_ids": list(copies)}
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": id,
            "run_id": id,
            "task_id": id,
            "created": created,
            "task": task,
            "dataset": dataset,
            "model": model,
            "config": {"epochs": max(copies.values(), default=1)},
        },
        "results": {
            "total_samples": len(samples),
            "completed_samples": sum("error" not in sample for sample in samples),
            "scores": [_mean(name, samples) for name in scorers],
        },
        "stats": {"started_at": created, "completed_at": created},
        "samples": samples,
    }


def _write_rows(path: Path, rows: Iterable[Row]) -> None:
    records.write_text(path, "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows))


def _opening(episode: Episode) -> list[Row]:
    system, user = episode.prompt.system, episode.prompt.user
    return [
        *([{"role": "system", "content": system}] if system else []),
        {"role": "user", "content": user},
    ]


def _around_calls(turn: Turn) -> str:
    """Return the turn's text without its calls, or all of it where no span tells them apart."""
    text, position, kept = turn.text, 0, []
    for start, end in sorted({call.span for call in turn.calls}):
        kept.append(text[position:start])
        position = max(position, end)
    return "".join([*kept, text[position:]]).strip()


def _tool_call(id: str, call: Call) -> Row:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {
        "id": id,
        "type": "function",
        "function": {"name": call.tool, "arguments": arguments},
    }


def _replies(number: int, turn: Turn) -> list[Row]:
    """Return what the policy read after a turn; an episode that ended there may have read less."""
    rows = []
    for place, (action, observation) in enumerate(
        zip(turn.actions, turn.observations, strict=False)
    ):
        if isinstance(action, Call):
            id = f"call_{number}_{place}"
            rows.append({"role": "tool", "tool_call_id": id, "content": observation.text})
        else:
            rows.append({"role": "user", "content": observation.text})
    return rows


def _whole_schema(tool: Mapping[str, Any]) -> Row:
    return dict(tool) if "function" in tool else {"type": "function", "function": dict(tool)}


def _written_calls(turn: Turn) -> str:
    calls = [{"name": call.tool, "arguments": dict(call.arguments)} for call in turn.calls]
    written = json.dumps(calls if len(calls) > 1 else calls[0], ensure_ascii=False)
    thought = _around_calls(turn) if any(call.span != (0, 0) for call in turn.calls) else ""
    if not thought:
        return written
    if not thought.startswith("<think>"):
        thought = f"<think>\n{thought}\n</think>"
    return f"{thought}\n\n{written}"


def _sample(episode: Episode, epoch: int, model: str, scorers: Mapping[str, Scorer]) -> Row:
    task, ending = episode.task, episode.ending
    rows = _inspect_messages(episode)
    last = next((row for row in reversed(rows) if row["role"] == "assistant"), None)
    stop = _STOPS.get(ending, "stop") if ending else "unknown"
    sample: Row = {
        "id": task.id,
        "epoch": epoch,
        "uuid": sha256(f"{task.id}/{epoch}/{episode.seed}".encode()).hexdigest()[:22],
        "input": _opening(episode),
        "target": list(task.answers),
        "messages": rows,
        "output": {
            "model": model,
            "choices": [{"message": last, "stop_reason": stop}] if last else [],
        },
        "metadata": {
            "question": task.question,
            "start": list(task.start),
            "ending": ending.value if ending else None,
            "seed": episode.seed,
        },
        "turn_count": len(episode.turns),
    }
    if ending is Ending.UNSCORED:
        error = {"message": episode.reason, "traceback": "", "traceback_ansi": ""}
        return {**sample, "error": error}
    if ending in _LIMITS:
        size = len(episode.turns) if ending is Ending.OUT_OF_TURNS else len(episode.tokens)
        sample["limit"] = {"type": _LIMITS[ending], "limit": size}
    answer = episode.answer.text if episode.answer else None
    sample["scores"] = {
        name: {"value": score(episode), "answer": answer} for name, score in scorers.items()
    }
    return sample


def _inspect_messages(episode: Episode) -> list[Row]:
    """Inspect keeps arguments as an object, and says which tool replied and whether it failed."""
    rows: list[Row] = []
    names: dict[str, str] = {}
    failed = _failed(episode.turns)
    for row in messages(episode)["messages"]:
        calls = row.pop("tool_calls", None)
        row = {**row, "content": row["content"] or ""}
        if calls:
            names |= {call["id"]: call["function"]["name"] for call in calls}
            row["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": call["function"]["name"],
                    "arguments": json.loads(call["function"]["arguments"]),
                }
                for call in calls
            ]
        if row["role"] == "tool":
            row["function"] = names[row["tool_call_id"]]
            if row["tool_call_id"] in failed:
                row["error"] = {"type": "unknown", "message": row["content"]}
        rows.append({"id": f"{episode.task.id}/{len(rows)}", **row})
    return rows


def _failed(turns: Sequence[Turn]) -> set[str]:
    return {
        f"call_{number}_{place}"
        for number, turn in enumerate(turns)
        for place, observation in enumerate(turn.observations)
        if observation.error
    }


def _mean(name: str, samples: Sequence[Row]) -> Row:
    values = [sample["scores"][name]["value"] for sample in samples if "scores" in sample]
    mean = {"mean": {"name": "mean", "value": sum(values) / len(values)}} if values else {}
    return {
        "name": name,
        "scorer": name,
        "scored_samples": len(values),
        "unscored_samples": len(samples) - len(values),
        "metrics": mean,
    }
