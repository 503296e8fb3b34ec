"""The names that `grisaille.laws` exports."""

from grisaille.laws.bounded import Beta as Beta, Uniform as Uniform
from grisaille.laws.censored import Censored as Censored
from grisaille.laws.counts import Binomial as Binomial, NegativeBinomial as NegativeBinomial, Poisson as Poisson
from grisaille.laws.heavy_tails import Laplace as Laplace, Student as Student
from grisaille.laws.joint import (
    JointLaw as JointLaw,
    MultivariateNormal as MultivariateNormal,
    SmoothCurve as SmoothCurve,
    Smoothness as Smoothness,
)
from grisaille.laws.law import Law as Law
from grisaille.laws.law_derivatives import Derivatives as Derivatives
from grisaille.laws.normal import LogNormal as LogNormal, Normal as Normal
from grisaille.laws.positive import Gamma as Gamma, HalfCauchy as HalfCauchy, HalfNormal as HalfNormal
from grisaille.laws.prior_measure import Prior as Prior
from grisaille.laws.rounded import Rounded as Rounded
from grisaille.laws.truncated import Truncated as Truncated
