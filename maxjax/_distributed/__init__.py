"""Processes that compute together: the engines that carry data between them, and their start."""
