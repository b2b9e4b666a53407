"""Errors and rules of promotion."""

from maxjax._base.errors import TypePromotionError as TypePromotionError
