"""The report's page: one HTML text with everything in it, and no script.

Text of graphs, policies and settings is escaped wherever it stands, and the page's own policy
forbids whatever would load or run.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from hopling.evaluation.cells import amount, share, table
from hopling.evaluation.charts import Curve, interval_chart, line_chart
from hopling.evaluation.intervals import Estimate
from hopling.evaluation.style import CSS
from hopling.evaluation.transcript import LEGEND, Example, tag, transcript

SHARES = ("exact_match", "hits_first", "hits_any", "f1", "observed", "grounded", "recalled")


def page(numbers: Mapping[str, Any], examples: Sequence[Sequence[Example]]) -> str:
    """Return the page of a report's numbers; each group of examples is one question's."""
    title = escape(numbers["title"])
    stages = numbers["stages"]
    return "".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta http-equiv="Content-Security-Policy" ',
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{title}</title><style>{CSS}</style></head><body><h1>{title}</h1>",
            _head(numbers),
            _main(stages),
            _hops(stages),
            _calls(stages, numbers["comparisons"]),
            _others(stages, numbers["metrics"]),
            _differences(numbers["comparisons"]),
            _outcomes(stages),
            _curves(numbers["curves"]),
            _examples(examples),
            _qtypes(stages),
            _settings(numbers["settings"]),
            _manifest(numbers["manifest"]),
            _definitions(numbers["metrics"]),
            "</body></html>\n",
        ]
    )


def _head(numbers: Mapping[str, Any]) -> str:
    manifest = numbers["manifest"]
    words = [f"{name} {manifest[name]}" for name in ("date", "seed", "command") if name in manifest]
    return f'<p class="soft">{escape(" | ".join(words))}</p>'


def _main(stages: Mapping[str, Any]) -> str:
    labels = ["Exact match", "Hits@1, first", "Hits@1, any", "F1", "Gold observed"]
    labels += ["Grounded", "Recalled"]
    has_unseen = any(stage["unseen"] for stage in stages.values())
    heads = ["", *labels, "Calls per correct", *(["Unseen type"] if has_unseen else [])]
    rows = []
    for name, stage in stages.items():
        cells = [share(stage["means"].get(metric)) for metric in SHARES]
        cells.append(amount(stage["calls_per_correct"]))
        if has_unseen:
            cells.append(share((stage["unseen"] or {"means": {}})["means"].get("exact_match")))
        rows.append([escape(name), *cells])
    num = max((stage["num_tasks"] for stage in stages.values()), default=0)
    caption = (
        f"{num} questions. Percent with 95 % intervals, bootstrapped over questions. "
        "Unscored episodes are in no mean. Unseen type: exact match on a question type that "
        "training left out; it is in no other column."
    )
    shown = [(name, stage["means"].get("exact_match")) for name, stage in stages.items()]
    chart = interval_chart([(name, Estimate(**mean)) for name, mean in shown if mean])
    figure = f"<figure>{chart}<figcaption>Exact match in percent.</figcaption></figure>"
    return f"<h2>Results</h2>{table(heads, rows, caption=caption)}{figure}"


def _hops(stages: Mapping[str, Any]) -> str:
    hops = _keys(stages, "by_hops")
    if not hops:
        return ""
    rows = [
        [escape(name), *(share(stage["by_hops"].get(h, {}).get("exact_match")) for h in hops)]
        for name, stage in stages.items()
    ]
    heads = ["", *(f"{hop} hop" + ("" if hop == "1" else "s") for hop in hops)]
    return f"<h2>Exact match by hops</h2>{table(heads, rows)}"


def _calls(stages: Mapping[str, Any], comparisons: Sequence[Mapping[str, Any]]) -> str:
    heads = ["", "On its correct answers", "All episodes", "Turns", "Tokens", "Seconds", "Repeats"]
    rows = [
        [
            escape(name),
            amount(stage["calls_per_correct"]),
            *(amount(stage["means"].get(m)) for m in ("calls", "turns", "tokens", "seconds")),
            share(stage["means"].get("repeats")),
        ]
        for name, stage in stages.items()
    ]
    both = [
        [_pair(c), amount(c["calls_both_correct"], signed=True)]
        for c in comparisons
        if c["calls_both_correct"] and not c["unseen"]
    ]
    second = table(["Where both are correct", "Calls, difference"], both) if both else ""
    return f"<h2>Calls on correctly answered questions</h2>{table(heads, rows)}{second}"


def _others(stages: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    names = dict.fromkeys(n for s in stages.values() for n in s["means"] if n not in known)
    if not names:
        return ""
    rows = [
        [escape(name), *(amount(stage["means"].get(metric)) for metric in names)]
        for name, stage in stages.items()
    ]
    heads = [name.replace("_", " ").capitalize() for name in names]
    return f"<h2>This recipe's own metrics</h2>{table(['', *heads], rows)}"


def _differences(comparisons: Sequence[Mapping[str, Any]]) -> str:
    if not comparisons:
        return ""
    heads = ["", "Exact match, difference", "Fixed", "Broken", "Both right", "Both wrong"]
    names = ("fixed", "broken", "both_right", "both_wrong", "num_dropped")
    rows = [
        [_pair(c), share(c["difference"], signed=True), *(str(c[name]) for name in names)]
        for c in comparisons
    ]
    caption = (
        "Paired by question, in points. Fixed: wrong before, right after. Left out: "
        "an episode was unscored or missing."
    )
    return f"<h2>Differences</h2>{table([*heads, 'Left out'], rows, caption=caption)}"


def _outcomes(stages: Mapping[str, Any]) -> str:
    names = _keys(stages, "outcomes")
    rows = [
        [escape(name), *(str(stage["outcomes"][outcome]) for outcome in names)]
        for name, stage in stages.items()
    ]
    return f"<h2>Outcomes</h2>{table(['', *names], rows, caption='Numbers of episodes.')}"


def _curves(curves: Iterable[Mapping[str, Any]]) -> str:
    figures = []
    for row in curves:
        curve = Curve(row["stage"], row["name"], tuple(tuple(p) for p in row["points"]))
        name = f"{curve.stage}: {curve.name}" if curve.stage else curve.name
        figures.append(
            f"<figure>{line_chart(curve)}<figcaption>{escape(name)}</figcaption></figure>"
        )
    body = f'<div class="curves">{"".join(figures)}</div>'
    return f"<h2>Learning curves</h2>{body}" if figures else ""


def _examples(examples: Iterable[Sequence[Example]]) -> str:
    shown: list[str] = []
    for first, *others in examples:
        question = escape(first.episode.task.question)
        inner = "".join(
            f"<details><summary>{tag(e.outcome)}{escape(e.stage)}</summary>{transcript(e)}</details>"
            for e in others
        )
        head = f"<summary>{tag(first.outcome)}{question}</summary>"
        title = f"<h3>{escape(first.stage)}</h3>"
        other = f"<h3>The same question in other stages</h3>{inner}" if inner else ""
        body = f"{head}{title}{transcript(first)}{other}"
        shown.append(f'<details class="example"{"" if shown else " open"}>{body}</details>')
    return f"<h2>Example episodes</h2>{LEGEND}{''.join(shown)}" if shown else ""


def _qtypes(stages: Mapping[str, Any]) -> str:
    qtypes = _keys(stages, "by_qtype")
    if not qtypes:
        return ""
    rows = [
        [
            escape(qtype),
            *(share(s["by_qtype"].get(qtype, {}).get("exact_match")) for s in stages.values()),
        ]
        for qtype in qtypes
    ]
    summary = f"<summary>{len(qtypes)} types</summary>"
    body = f"<details>{summary}{table(['', *stages], rows)}</details>"
    return f"<h2>Exact match by question type</h2>{body}"


def _settings(settings: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for s in settings:
        style = ' class="changed"' if s["changed"] else ""
        source = (
            s["source"] if not s["changed"] else f"set here; default {s['default']}, {s['source']}"
        )
        cells = (
            f"<span{style}>{escape(str(s['value']))}</span>",
            escape(source),
            escape(s["help"]),
        )
        rows.append([escape(s["name"]), *cells])
    return "<h2>Settings</h2>" + table(["Name", "Value", "Source", ""], rows, style="text")


def _manifest(manifest: Mapping[str, Any]) -> str:
    rows = []
    for name, value in manifest.items():
        if name == "settings":
            continue
        text = ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
        rows.append(f"<dt>{escape(name)}</dt><dd>{escape(str(text))}</dd>")
    return f"<h2>Versions and origin</h2><dl>{''.join(rows)}</dl>" if rows else ""


def _definitions(metrics: Mapping[str, Any]) -> str:
    rows = [f"<dt>{escape(m['label'])}</dt><dd>{escape(m['is'])}</dd>" for m in metrics.values()]
    return f"<h2>Definitions</h2><dl>{''.join(rows)}</dl>"


def _pair(comparison: Mapping[str, Any]) -> str:
    kind = " (unseen type)" if comparison["unseen"] else ""
    return escape(f"{comparison['before']} to {comparison['after']}{kind}")


def _keys(stages: Mapping[str, Any], group: str) -> list[str]:
    return list(dict.fromkeys(key for stage in stages.values() for key in stage[group]))
