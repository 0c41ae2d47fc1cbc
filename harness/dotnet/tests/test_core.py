"""The same tests with .NET 9, NUnit 3, the C# compiler of Roslyn and Azure.Messaging.ServiceBus, and tests of that SDK. The
snippets of the README are compiled as they are.

`SERVICEBUS_DOTNET` names the directory of the toolchain.
"""

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import test_package
from test_package import HERE, SNIPPETS

sys.path.insert(0, str(HERE.parent))
from toolchain import Toolchain

TOOLCHAIN = Toolchain(Path(os.environ["SERVICEBUS_DOTNET"]))
SDK = TOOLCHAIN.sdk
os.environ.update(TOOLCHAIN.environment())


class Core(test_package.Library):
    """Tests with .NET; its runtime finds a native file of a package in the output, where `dotnet build` copies it."""

    def setUp(self) -> None:
        super().setUp()
        for file in (TOOLCHAIN.nunit, *SDK):
            shutil.copy(file, self.output)
        self.RUN = [str(TOOLCHAIN.write_host(self.output, "Waiting", "Waiting.exe"))]

    def test_the_sources_compile_in_each_version_of_csharp(self) -> None:
        for version in ("7.3", "8", "9", "10", "preview"):
            with self.subTest(version):
                compile("library", version, self.output / "Sources.dll", *(HERE.parent / "src").glob("*.cs"))

    def test_the_first_test_of_the_readme_compiles_with_nullable_types(self) -> None:
        self.write("First.cs", SNIPPETS[0])
        for version in ("8", "9", "10", "preview"):
            with self.subTest(version):
                references = [f"-r:{file}" for file in (self.library, *SDK)]
                compile("library", version, self.output / "First.dll", self.output / "First.cs", "-nullable:enable", *references)

    def test_the_program_is_found_in_restored_packages_and_on_the_path(self) -> None:
        self.program()
        shutil.move(self.output / test_package.PROGRAM, self.output)
        shutil.rmtree(self.output / "runtimes")
        self.starts()

    def test_the_sdk_works(self) -> None:
        self.build("Sdk.dll", *(HERE / "core/sdk").glob("*.cs"))
        output = self.nunit("Sdk.dll")
        self.assertRegex(output, r"Tests run: \d\d, Errors: 0, Failures: 0")

    def csharp(self, text: str) -> str:
        return text

    def build(self, name: str, *sources: Path) -> None:
        kind = "exe" if name.endswith(".exe") else "library"
        # Faults of these tests are on requests that the SDK does not send.
        uses_stub = HERE / "Namespaces.cs" in sources
        used = [f"-r:{file}" for file in (self.library, *([] if uses_stub else SDK))]
        used += [file for file in sources if uses_stub or file.name != "Azure.cs"]
        compile(kind, "10", self.output / name, *used, HERE / "core/Is.cs")

    def nunit(self, name: str) -> str:
        compile("exe", "10", self.output / "Run.dll", HERE / "core/Run.cs")
        run = TOOLCHAIN.write_host(self.output, "Run", "Run.dll")
        ended = subprocess.run([run, name], cwd=self.output, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return ended.stdout


def compile(kind: str, version: str, output: Path, *arguments: str | Path) -> None:
    TOOLCHAIN.compile(kind, version, output, f"-r:{TOOLCHAIN.nunit}", *arguments)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
