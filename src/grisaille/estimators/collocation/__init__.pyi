"""The names that `grisaille.estimators.collocation` exports."""

from grisaille.estimators.collocation.collocation_posing import pose_elements as pose_elements
from grisaille.estimators.collocation.collocation_result import describe_lean as describe_lean
from grisaille.estimators.collocation.criteria import solve as solve
from grisaille.estimators.collocation.strides import Strides as Strides
