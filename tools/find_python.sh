#!/bin/sh
# Prints a Python of version 3.$1 or later: the first of the given ones ($2, where it is not empty),
# those on the PATH, and those that pyenv has installed; or says what is needed.
least=$1
given=$2
suits() {
  "$1" -c "import sys, venv; sys.exit(sys.version_info < (3, $least))" 2>/dev/null
}
for python in $given python3.14 python3.13 python3.12 python3 \
  $(ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python 2>/dev/null | sort -rV); do
  if suits "$python"; then
    command -v "$python"
    exit 0
  fi
done
echo "Python 3.$least or later is needed, and none was found: install one, or say PYTHON=/path/to/python" >&2
exit 1
