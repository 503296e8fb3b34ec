"""The names that `grisaille.estimators` exports."""

from grisaille.estimators.choice import choose_method as choose_method
from grisaille.estimators.fitting import build_problem as build_problem, fit_problem as fit_problem
from grisaille.estimators.kalman_ml.score_sandwich import score_sandwich as score_sandwich
