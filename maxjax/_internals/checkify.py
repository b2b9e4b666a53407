"""Checks at run time."""

from typing import TypeVar

from maxjax.experimental._checkify_errors import JaxException as JaxException
from maxjax.experimental.checkify import Error as Error
from maxjax.experimental.checkify import checkify as checkify
from maxjax.experimental.checkify import user_checks as user_checks

Out = TypeVar("Out")
