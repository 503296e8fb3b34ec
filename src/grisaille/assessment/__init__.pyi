"""The names that `grisaille.assessment` exports."""

from grisaille.assessment.between_outputs import correlated_pairs as correlated_pairs
from grisaille.assessment.boundary import mixture_p as mixture_p, mixture_weights as mixture_weights
from grisaille.assessment.deviance_law import DevianceLaw as DevianceLaw
from grisaille.assessment.deviances import Deviances as Deviances, deviances_of as deviances_of
from grisaille.assessment.diagnosis import (
    BETWEEN_OUTPUTS as BETWEEN_OUTPUTS,
    Diagnosis as Diagnosis,
    ratio_text as ratio_text,
)
from grisaille.assessment.profile import Profile as Profile, ProfileSide as ProfileSide
from grisaille.assessment.profile_points import ProfilePoint as ProfilePoint
from grisaille.assessment.sensitivity import Sensitivity as Sensitivity
from grisaille.assessment.surface import CostSurface as CostSurface
