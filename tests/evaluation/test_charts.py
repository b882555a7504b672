import json
from pathlib import Path

import pytest

from hopling.evaluation.charts import Curve, interval_chart, line_chart, read_curves
from hopling.evaluation.intervals import Estimate


def test_each_number_of_each_stage_is_a_curve(tmp_path: Path) -> None:
    """Ours: the metrics file's rows have a step and, where there are several, a stage."""
    path = tmp_path / "metrics.jsonl"
    rows = [
        {"stage": "sft", "step": 1, "loss": 2.0, "note": "warm", "done": True},
        {"stage": "rl", "step": 1, "loss": 1.0, "entropy": float("nan")},
        {"stage": "rl", "step": 2, "loss": 0.5},
        {"loss": 9.0},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert read_curves(path) == [
        Curve("sft", "loss", ((1, 2.0),)),
        Curve("rl", "loss", ((1, 1.0), (2, 0.5))),
    ]


def test_a_run_without_metrics_has_no_curves(tmp_path: Path) -> None:
    """Ours."""
    assert read_curves(tmp_path / "metrics.jsonl") == []


@pytest.mark.parametrize("points", [((3, 1.0),), ((0, 0.0), (1, 0.0))])
def test_a_flat_or_single_point_curve_is_drawn(points: tuple[tuple[float, float], ...]) -> None:
    """BUGS B14: equal values divide nothing by zero."""
    assert "nan" not in line_chart(Curve("rl", "kl", points))


def test_chart_texts_are_escaped() -> None:
    """USERS need 12: text of a file is never markup."""
    assert "<b>" not in line_chart(Curve("rl", "<b>", ((0, 1.0),)))
    assert "<b>" not in interval_chart([("<b>", Estimate(0.5, 0.4, 0.6, 9))])
