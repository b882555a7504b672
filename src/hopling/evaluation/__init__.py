"""Evaluation: playing tasks, judging episodes, comparing, and the run's folder and report."""
