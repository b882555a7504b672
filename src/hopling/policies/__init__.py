"""Who writes the turns: scripts, local models, servers."""
