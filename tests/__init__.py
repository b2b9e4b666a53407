"""The tests, grouped by what they need; CONTRIBUTING.md describes the layout."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
