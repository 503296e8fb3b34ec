"""Published tables and figures, computed again: each prints our numbers beside the published ones.

Receives a name such as ``fladischer/table-4.3`` and a size; hands on a ``Reproduction`` and figures in a folder. Uses
the package as a user would.
"""
