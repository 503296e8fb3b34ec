"""The names that `grisaille.compilation.cuda` exports."""

from grisaille.compilation.cuda.cuda_source import one_text as one_text
from grisaille.compilation.cuda.tasks import task_source as task_source
