"""The tests, by what they need; CONTRIBUTING.md tells how they are laid out."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
