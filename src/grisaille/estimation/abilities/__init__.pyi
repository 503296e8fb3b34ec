"""The names that `grisaille.estimation.abilities` exports."""

from grisaille.estimation.abilities.advice import Advice as Advice
from grisaille.estimation.abilities.old_contract import GONE as GONE
from grisaille.estimation.abilities.redraw import Redraw as Redraw
from grisaille.estimation.abilities.states import States as States
from grisaille.estimation.abilities.table import ABILITIES as ABILITIES, TESTS as TESTS, abilities as abilities
