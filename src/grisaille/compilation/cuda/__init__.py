"""Batches on graphics processors: the same headers and generated code, compiled when they are first run there."""
