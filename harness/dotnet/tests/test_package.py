"""The package is valid for NuGet, and its library works with Mono as the README describes.

`SERVICEBUS_PACKAGE` names the package. It is unpacked as NuGet restores it, without file modes.
"""

import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import zipfile
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from textwrap import indent
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PACKAGE = Path(os.environ["SERVICEBUS_PACKAGE"])
FACADE = "/usr/lib/mono/4.5/Facades/netstandard.dll"
NUNIT = next(Path("/usr/lib/cli").glob("nunit.framework-*/nunit.framework.dll"))
PLATFORM = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}[platform.machine()]
PROGRAM = f"runtimes/{PLATFORM}/native/servicebus-emulator"
SECONDS = 30
SNIPPETS = re.findall(r"```csharp\n(.*?)```", (HERE.parent / "README.md").read_text(), re.DOTALL)
SPACES = ["System", "System.Threading.Tasks", "Azure.Messaging.ServiceBus", "NUnit.Framework", "ServiceBus.Testing"]
USING = "".join(f"using {space};\n" for space in SPACES)
WAITING = """
    public static class Waiting
    {
        public static void Main()
        {
            var bus = ServiceBusEmulator.StartAsync().GetAwaiter().GetResult();
            Console.WriteLine(bus.AdministrationConnectionString);
            System.Threading.Thread.Sleep(-1);
        }
    }
"""
PROJECT = """<Project DefaultTargets="Show" xmlns="http://schemas.microsoft.com/developer/msbuild/2003">
  <Import Project="build/ServiceBus.Testing.targets" />
  <Target Name="Show"><Message Importance="high" Text="copied: @(None)." /></Target>
</Project>
"""


class Layout(unittest.TestCase):
    """The parts of the package that NuGet reads."""

    def setUp(self) -> None:
        self.archive = zipfile.ZipFile(PACKAGE)
        self.addCleanup(self.archive.close)
        self.names = self.archive.namelist()

    def test_it_contains_the_library_the_program_and_the_texts(self) -> None:
        library = [f"lib/netstandard2.0/ServiceBus.Testing.{kind}" for kind in ("dll", "xml")]
        targets = [f"{folder}/ServiceBus.Testing.targets" for folder in ("build", "buildTransitive")]
        texts = ["README.md", "LICENSE-APACHE", "LICENSE-MIT", f"licences/{PROGRAM.split('/')[1]}.txt"]
        expected = ["[Content_Types].xml", "_rels/.rels", "ServiceBus.Testing.nuspec", *texts, *library, *targets, PROGRAM]
        others = [name for name in self.names if name not in expected]
        self.assertEqual(set(expected) - set(self.names), set())
        for name in others:
            self.assertRegex(name, r"^runtimes/(linux|osx|win)-(x64|arm64)/native/servicebus-emulator(\.exe)?$|^licences/[a-z0-9-]+\.txt$")
        self.assertEqual(self.names[0], "[Content_Types].xml")

    def test_its_manifest_has_the_version_of_the_workspace_and_no_dependencies(self) -> None:
        [relationship] = self.xml("_rels/.rels")
        self.assertEqual(relationship.get("Target"), "/ServiceBus.Testing.nuspec")
        space = "{http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd}"
        metadata = self.xml("ServiceBus.Testing.nuspec").find(f"{space}metadata")
        fields = {entry.tag.removeprefix(space): entry for entry in metadata}
        version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
        self.assertEqual((fields["id"].text, fields["version"].text), ("ServiceBus.Testing", version))
        self.assertEqual(PACKAGE.name, f"ServiceBus.Testing.{version}.nupkg")
        self.assertTrue(fields["authors"].text and fields["description"].text)
        self.assertIn(fields["readme"].text, self.names)
        [group] = fields["dependencies"]
        self.assertEqual((group.get("targetFramework"), list(group)), (".NETStandard2.0", []))

    def test_each_part_has_a_content_type(self) -> None:
        types = self.xml("[Content_Types].xml")
        extensions = {entry.get("Extension") for entry in types if entry.get("Extension")}
        parts = {entry.get("PartName") for entry in types if entry.get("PartName")}
        for name in self.names[1:]:
            self.assertTrue(Path("x" + Path(name).name).suffix[1:] in extensions or f"/{name}" in parts, name)

    def test_its_targets_copy_the_programs(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            self.archive.extractall(directory)
            project = Path(directory, "T.proj")
            project.write_text(PROJECT)
            ended = subprocess.run(["xbuild", "/nologo", project], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for program in (name for name in self.names if name.startswith("runtimes/")):
                self.assertRegex(ended.stdout, f"copied: .*{re.escape(program)}")

    def test_its_targets_name_the_programs(self) -> None:
        for folder in ("build", "buildTransitive"):
            [copied] = self.xml(f"{folder}/ServiceBus.Testing.targets").iter("{http://schemas.microsoft.com/developer/msbuild/2003}None")
            pattern = copied.get("Include").replace("$(MSBuildThisFileDirectory)", f"{folder}/")
            self.assertEqual(os.path.normpath(pattern), "runtimes/**/*")

    def xml(self, name: str) -> ElementTree.Element:
        return ElementTree.fromstring(self.archive.read(name))


class Library(unittest.TestCase):
    """Tests that use the package, by default with Mono and NUnit 2."""

    RUN = ["mono", "Waiting.exe"]

    def setUp(self) -> None:
        self.directory = Path(tempfile.mkdtemp(dir=PACKAGE.parent))
        self.addCleanup(shutil.rmtree, self.directory)
        with zipfile.ZipFile(PACKAGE) as archive:
            archive.extractall(self.directory / "restored")
        self.library = self.directory / "restored/lib/netstandard2.0/ServiceBus.Testing.dll"
        self.output = self.directory / "output"
        self.output.mkdir()
        for file in (self.library, NUNIT):
            shutil.copy(file, self.output)
        shutil.copytree(self.directory / "restored/runtimes", self.output / "runtimes")
        self.assertFalse(os.access(self.output / PROGRAM, os.X_OK))

    def test_the_tests_pass(self) -> None:
        self.build("Tests.dll", *(HERE / f"{name}.cs" for name in ("Namespaces", "Values", "Azure")))
        output = self.nunit("Tests.dll")
        self.assertRegex(output, r"Tests run: \d\d, Errors: 0, Failures: 0")

    def test_the_first_test_of_the_readme_passes(self) -> None:
        self.write("First.cs", self.csharp(SNIPPETS[0]))
        self.build("First.dll", self.output / "First.cs", HERE / "Azure.cs")
        output = self.nunit("First.dll")
        self.assertIn("Tests run: 1, Errors: 0, Failures: 0", output)

    def test_a_failing_test_shows_its_timeline(self) -> None:
        self.write("Red.cs", f"{USING}public class Red\n{{\n{self.csharp(SNIPPETS[1])}}}\n")
        self.build("Red.dll", self.output / "Red.cs", HERE / "Azure.cs")
        output = self.nunit("Red.dll")
        self.assertIn("Tests run: 1, Errors: 1, Failures: 0", output)
        self.assertRegex(
            output,
            r"Expected: 1\n +But was:  0\n\ntimeline of test-1\n  \+\d+\.\d+ s +sent +o-17, by .*time to live 3600 s, in queue\.1\n"
            r" +clock advanced  by the test, 3600 s\n  \+3600\.\d+ s +expired +o-17, in queue\.1",
        )

    def test_other_snippets_of_the_readme_compile_and_run(self) -> None:
        topology, faults = SNIPPETS[2:]
        test = f"[Test] public async Task It()\n{{\n{indent(topology + faults, '    ')}}}\n"
        self.write("Others.cs", self.csharp(f"{USING}public class Others\n{{\n{test}}}\n"))
        self.build("Others.dll", self.output / "Others.cs", HERE / "Azure.cs")
        output = self.nunit("Others.dll")
        self.assertEqual(output.count("a fault never fired: "), 3, output)

    def test_the_program_is_found_in_restored_packages_and_on_the_path(self) -> None:
        self.program()
        shutil.rmtree(self.output / "runtimes")
        (self.output / "ServiceBus.Testing.dll").unlink()
        self.starts(MONO_PATH=str(self.library.parent))
        shutil.copy(self.library, self.output)
        program = self.directory / "restored" / PROGRAM
        self.starts(PATH=f"{os.environ['PATH']}:{program.parent}")
        shutil.copy(program, self.output)
        self.starts()

    def test_without_a_program_the_error_says_how_to_build_one(self) -> None:
        self.program()
        shutil.rmtree(self.output / "runtimes")
        command = [shutil.which(self.RUN[0]), *self.RUN[1:]]
        environment = {**os.environ, "PATH": "/nowhere"}
        ended = subprocess.run(command, cwd=self.output, env=environment, capture_output=True, text=True)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn(
            f"this package has no emulator for {PLATFORM}, and PATH has none: build it with "
            "`cargo build --release -p servicebus-emulator` and set SERVICEBUS_EMULATOR_BIN to the program",
            ended.stdout + ended.stderr,
        )

    def test_a_program_that_leaves_another_process_is_refused_at_once(self) -> None:
        output = self.refuses("echo not ready\necho wrong >&2\nsleep 60 &\nexec sleep 60\n")
        self.assertIn("the emulator did not start: wrong", output)

    def test_a_program_of_another_version_is_refused(self) -> None:
        output = self.refuses("""echo '{"event":"ready","version":"9.9.9"}'\n""")
        self.assertRegex(
            output, r"did not start: /\S+/other is version 9\.9\.9, but this package is version \d\S+; check .* SERVICEBUS_EMULATOR_BIN"
        )

    def refuses(self, script: str) -> str:
        """Starts this script instead of the emulator, and returns the output of the run, which must fail."""
        self.program()
        self.write("other", f"#!/bin/sh\n{script}")
        other = self.output / "other"
        other.chmod(0o755)
        environment = {**os.environ, "SERVICEBUS_EMULATOR_BIN": str(other)}
        # The timeout is shorter than a sleep of the script, for which a run that hangs would wait.
        ended = subprocess.run(
            self.RUN, cwd=self.output, env=environment, capture_output=True, text=True, timeout=SECONDS
        )
        self.assertNotEqual(ended.returncode, 0)
        return ended.stdout + ended.stderr

    def test_the_emulator_ends_when_the_run_is_ended_by_a_signal(self) -> None:
        self.program()
        for end in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            self.starts(end)

    def program(self) -> None:
        """Compiles a program that creates a namespace and waits."""
        self.write("Waiting.cs", USING.replace("using Azure.Messaging.ServiceBus;\n", "") + WAITING)
        self.build("Waiting.exe", self.output / "Waiting.cs")

    def starts(self, end: signal.Signals = signal.SIGKILL, **environment: str) -> None:
        """Runs that program until it has a namespace, and ends it; the emulator must end, too."""
        run = subprocess.Popen(self.RUN, cwd=self.output, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True)
        try:
            endpoint = re.match(r"Endpoint=sb://([^;]*);", run.stdout.readline())
            self.assertIsNotNone(endpoint)
            with closing(HTTPConnection(endpoint[1], timeout=SECONDS)) as connection:
                connection.request("GET", "/$emulator/v1/hold")
                response = connection.getresponse()
                run.send_signal(end)
                response.read()  # It ends when the emulator ends, or fails with a timeout.
        finally:
            run.kill()
            run.communicate(timeout=SECONDS)

    def csharp(self, text: str) -> str:
        return without_await_using(text)

    def write(self, name: str, text: str) -> None:
        (self.output / name).write_text(text)

    def build(self, name: str, *sources: Path) -> None:
        references = f"-r:{self.library},{NUNIT},{FACADE},System.Net.Http.dll,System.Numerics.dll"
        kind = "exe" if name.endswith(".exe") else "library"
        command = ["mcs", "-warnaserror", f"-target:{kind}", f"-out:{self.output / name}", references, *map(str, sources)]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(ended.returncode, 0, ended.stdout)

    def nunit(self, name: str) -> str:
        command = ["nunit-console", "-nologo", "-nodots", "-noresult", name]
        return subprocess.run(command, cwd=self.output, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def without_await_using(text: str) -> str:
    """Replaces `await using`, which Mono's compiler does not have, by `try` and `finally` to the end of the block."""
    lines: list[str] = []
    ends: list[tuple[str, str]] = []
    for line in text.splitlines():
        while ends and line.startswith("}" if not ends[-1][0] else ends[-1][0][:-4] + "}"):
            lines.append(f"}} finally {{ await {ends.pop()[1]}.DisposeAsync(); }}")
        declared = re.match(r"( *)await using var (\w+) = ", line)
        lines.append(line.replace("await using var", "var"))
        if declared:
            lines.append("try {")
            ends.append((declared[1], declared[2]))
    lines += [f"}} finally {{ await {name}.DisposeAsync(); }}" for _, name in reversed(ends)]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
