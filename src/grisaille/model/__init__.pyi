"""The names that `grisaille.model` exports."""

from grisaille.model.curve_tables import find_curves as find_curves
from grisaille.model.expression import (
    Call as Call,
    Condition as Condition,
    Constant as Constant,
    Equation as Equation,
    Expression as Expression,
    Name as Name,
    postorder as postorder,
    same as same,
)
from grisaille.model.flat import FlatDisturbance as FlatDisturbance, FlatModel as FlatModel
from grisaille.model.flattening.flatten import flatten as flatten
from grisaille.model.functions import array as array
from grisaille.model.ordering import strong_components as strong_components
from grisaille.model.packing import pack as pack, unpack as unpack
from grisaille.model.rewriting import Rewriter as Rewriter
from grisaille.model.spectra import (
    Spectrum as Spectrum,
    double_integrated as double_integrated,
    from_spectral_density as from_spectral_density,
    integrated as integrated,
    lowpass as lowpass,
    matern12 as matern12,
    matern32 as matern32,
    matern52 as matern52,
    ornstein_uhlenbeck as ornstein_uhlenbeck,
    periodic as periodic,
    quasi_periodic as quasi_periodic,
    rational as rational,
    resonance as resonance,
    state_space as state_space,
    white as white,
)
from grisaille.model.symbol_arrays import SymbolArray as SymbolArray
from grisaille.model.units import read_unit as read_unit
from grisaille.model.whens import (
    change as change,
    edge as edge,
    initial as initial,
    terminal as terminal,
    whenever as whenever,
)
