"""The steps of a nonlinear filter between samples: chosen once along a record, then fixed."""
