"""Models and formulas as text, MathML and pages."""
