"""The tests in the README pass, and its faults are added."""

import re
from pathlib import Path
from textwrap import indent

from pytest import Pytester

README = Path(__file__).parent.parent.joinpath("README.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_each_snippet_runs(project: Pytester) -> None:
    tests = [snippet for snippet in SNIPPETS if "def test_" in snippet]
    [faults] = [snippet for snippet in SNIPPETS if "faults.on" in snippet and "def test_" not in snippet]
    head = "import pytest\n\n@pytest.mark.servicebus(queues=['orders'])\ndef test_faults(servicebus):\n"
    tests.append(f"{head}{indent(faults, '    ')}")
    for number, text in enumerate(tests):
        (project.path / f"test_{number}.py").write_text(text)
    result = project.runpytest_subprocess()
    result.assert_outcomes(passed=len(tests), errors=1)
    result.stdout.fnmatch_lines(["a fault never fired: *"] * 3)
