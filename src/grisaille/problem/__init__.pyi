"""The names that `grisaille.problem` exports."""

from grisaille.problem.creating import create as create, templates as templates
from grisaille.problem.document import (
    UnreadableDocument as UnreadableDocument,
    find_lines as find_lines,
    read_document as read_document,
    show_place as show_place,
)
from grisaille.problem.first_model import create_from_csv as create_from_csv, read_file as read_file
from grisaille.problem.folder import Problem as Problem, load_problem as load_problem
from grisaille.problem.folder_methods import make_method as make_method
from grisaille.problem.folder_paths import leads_outside as leads_outside
from grisaille.problem.folder_priors import make_prior as make_prior
from grisaille.problem.linting import file_to_run as file_to_run, lint as lint
from grisaille.problem.schema import problem_schema as problem_schema
from grisaille.problem.schema_deviations import deviations as deviations
from grisaille.problem.studies import at_values as at_values
from grisaille.problem.study_file import StudyPlan as StudyPlan, read_plan as read_plan, read_store as read_store
