"""``python -m tests.recorded``: writes the recorded outcomes anew; read the difference."""

import argparse
import json
import sys

from tests.recorded import outcomes

parser = argparse.ArgumentParser(prog="python -m tests.recorded", description=__doc__)
parser.add_argument("names", nargs="*", help="files without their suffix; all of them by default")
parser.add_argument("--run", metavar="LIBRARY", help="print what a file gives there, as JSON")
arguments = parser.parse_args()
if arguments.run:
    name, = arguments.names
    found = outcomes.run(arguments.run, name)
    json.dump(found, sys.stdout)
else:
    for name in arguments.names or outcomes.NAMES:
        outcomes.record(name)
