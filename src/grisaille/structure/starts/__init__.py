"""Consistent starts: what must hold, what is wished for, and how the start moves with parameters."""
