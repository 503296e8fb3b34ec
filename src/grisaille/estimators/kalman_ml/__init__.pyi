"""The names that `grisaille.estimators.kalman_ml` exports."""

from grisaille.estimators.kalman_ml.fit_diagnosis import edge_notes as edge_notes, off_a_maximum as off_a_maximum
from grisaille.estimators.kalman_ml.likelihood_search import LikelihoodSearch as LikelihoodSearch
