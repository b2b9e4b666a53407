"""The runtime: importing it installs it below transformations, and the tiers behind programs."""

from maxjax._runtime import native_functions, pending, tiering
