"""Readers and writers of turns."""

from hopling.dialects.tool_calls import ToolCalls

__all__ = ["ToolCalls"]
