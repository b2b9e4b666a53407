#!/bin/sh
# Prints a Python of version 3.$1 or later: the first of the given ones ($2, where it is not empty),
# those on the PATH, and those that pyenv has installed; or says what is needed. With "oldest" as $3
# it is the oldest of them that will do.
least=$1
given=$2
suits() {
  "$1" -c "import sys, ensurepip, venv; sys.exit(sys.version_info < (3, $least))" 2>/dev/null
}
installed() {
  ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python 2>/dev/null | sort "$1"
}
if [ "$3" = oldest ]; then
  others="python3.11 python3.12 python3.13 python3 $(installed -V)"
else
  others="python3.14 python3.13 python3.12 python3 $(installed -rV)"
fi
for python in $given $others; do
  if suits "$python"; then
    command -v "$python"
    exit 0
  fi
done
echo "Python 3.$least or later is needed, and none was found: install one, or say PYTHON=/path/to/python" >&2
exit 1
