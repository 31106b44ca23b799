"""What doxygen reads of a public header (docs/Doxyfile): without the comment that the header begins with.

That comment says how the parts of the header fit. Doxygen would take all headers' comments, one behind the other, for
the description of the namespace. `reference_pages` shows each at the top of its header's page instead.
"""

import sys
from pathlib import Path

lines = Path(sys.argv[1]).read_text().split("\n")
for number, line in enumerate(lines[1:], 1):
    if line.startswith("///"):
        lines[number] = ""
    elif line:
        break
sys.stdout.write("\n".join(lines))
