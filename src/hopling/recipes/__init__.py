"""One file per paper that puts the parts in order."""
