"""The runtime: importing it puts the lazy trace at the bottom, and the tiers behind programs."""

from maxjax._runtime import native_functions, pending, tiering
