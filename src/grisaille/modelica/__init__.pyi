"""The names that `grisaille.modelica` exports."""

from grisaille.modelica.full.flat_text import flat_text as flat_text
from grisaille.modelica.library import FunctionLibrary as FunctionLibrary
from grisaille.modelica.limits import Unfit as Unfit
from grisaille.modelica.parsing import parse as parse
from grisaille.modelica.refusals import Refused as Refused
from grisaille.modelica.tokens import Tokens as Tokens
from grisaille.modelica.tree import Calling as Calling
from grisaille.modelica.unreachable import Unreachable as Unreachable
from grisaille.modelica.values import RecordValue as RecordValue
