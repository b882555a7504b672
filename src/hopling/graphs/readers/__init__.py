"""Readers of formats that are not lines of triples; each module has a `read(source, scope)`."""
