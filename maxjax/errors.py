"""jax.errors: what is raised where values of a trace are used as numbers, and its kin."""

from __future__ import annotations

from maxjax._base.errors import CompileError as CompileError
from maxjax._base.errors import ConcretizationTypeError as ConcretizationTypeError
from maxjax._base.errors import DynamicSizeError as DynamicSizeError
from maxjax._base.errors import (
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
)
from maxjax._base.errors import JAXIndexError as JAXIndexError
from maxjax._base.errors import JaxprTypeError as JaxprTypeError
from maxjax._base.errors import JaxRuntimeError as JaxRuntimeError
from maxjax._base.errors import JAXTypeError as JAXTypeError
from maxjax._base.errors import KeyReuseError as KeyReuseError
from maxjax._base.errors import NonConcreteBooleanIndexError as NonConcreteBooleanIndexError
from maxjax._base.errors import TracerArrayConversionError as TracerArrayConversionError
from maxjax._base.errors import TracerBoolConversionError as TracerBoolConversionError
from maxjax._base.errors import TracerIntegerConversionError as TracerIntegerConversionError
from maxjax._base.errors import UnexpectedTracerError as UnexpectedTracerError
from maxjax._base.missing import explain_missing_names

explain_missing_names(__name__)
