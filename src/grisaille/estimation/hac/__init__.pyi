"""The names that `grisaille.estimation.hac` exports."""

from grisaille.estimation.hac.autoregressive_process import (
    AutoregressiveProcess as AutoregressiveProcess,
    ResidualMoments as ResidualMoments,
    yule_walker as yule_walker,
)
from grisaille.estimation.hac.robust_errors import (
    RobustCovariance as RobustCovariance,
    RobustErrors as RobustErrors,
    ScoreSeries as ScoreSeries,
)
from grisaille.estimation.hac.series import SampleGrid as SampleGrid
