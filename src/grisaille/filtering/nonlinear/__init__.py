"""The filters of nonlinear models, which step through a record in the cells between samples."""
