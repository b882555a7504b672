"""Readers and writers of turns."""

from hopling.dialects.tokenizers import check_history, format_for
from hopling.dialects.tool_calls import ToolCalls, braced

__all__ = ["ToolCalls", "braced", "check_history", "format_for"]
