"""Tasks and where they come from, traces that teach them, and the formats episodes leave in."""
