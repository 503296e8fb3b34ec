"""Fitted values back in Modelica: models that extend the original, written and read again."""
