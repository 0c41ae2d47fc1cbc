"""The same tests with .NET Core, NUnit 3 and the C# compiler of Roslyn. The snippets of the README are compiled as they are.

`SERVICEBUS_DOTNET` names the directory that `harness/dotnet/core` fills.
"""

import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import test_package
from test_package import HERE, SNIPPETS

DIRECTORY = Path(os.environ["SERVICEBUS_DOTNET"])
[RUNTIME] = (DIRECTORY / "dotnetcore2/bin/shared/Microsoft.NETCore.App").iterdir()
DOTNET = str(DIRECTORY / "dotnetcore2/bin/dotnet")
NUNIT = DIRECTORY / "nunit/nunit.framework.dll"
NATIVE = ("clrcompression", "Microsoft.DiaSymReader.Native", "api-ms", "mscorlib.dll")
REFERENCES = [f"-r:{file}" for file in RUNTIME.glob("*.dll") if not file.name.startswith(NATIVE)]
CONFIG = {"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": RUNTIME.name}}}
ROSLYN = DIRECTORY / "roslyn"
SETTINGS = ["--depsfile", ROSLYN / "AutoRest.CSharp.deps.json", "--runtimeconfig", ROSLYN / "AutoRest.CSharp.runtimeconfig.json"]
COMPILER = [DOTNET, "exec", *SETTINGS, ROSLYN / "compile.dll"]


class Core(test_package.Library):
    """Tests with .NET Core; its runtime finds a native file of a package in the output, where `dotnet build` copies it."""

    RUN = [DOTNET, "Waiting.exe"]

    def setUp(self) -> None:
        super().setUp()
        shutil.copy(NUNIT, self.output)
        self.configure("Waiting")

    def test_the_sources_compile_in_each_version_of_csharp(self) -> None:
        for version in ("7.3", "8", "9", "10", "preview"):
            with self.subTest(version):
                compile("library", version, self.output / "Sources.dll", *(HERE.parent / "src").glob("*.cs"))

    def test_the_first_test_of_the_readme_compiles_with_nullable_types(self) -> None:
        self.write("First.cs", SNIPPETS[0])
        azure = self.output / "Azure.dll"
        compile("library", "8", azure, HERE / "Azure.cs")
        references = [f"-r:{file}" for file in (self.library, NUNIT, azure)]
        for version in ("8", "9", "10", "preview"):
            with self.subTest(version):
                compile("library", version, self.output / "First.dll", self.output / "First.cs", "-nullable:enable", *references)

    def test_the_program_is_found_in_restored_packages_and_on_the_path(self) -> None:
        self.program()
        shutil.move(self.output / test_package.PROGRAM, self.output)
        shutil.rmtree(self.output / "runtimes")
        self.starts()

    def csharp(self, text: str) -> str:
        return text

    def build(self, name: str, *sources: Path) -> None:
        kind = "exe" if name.endswith(".exe") else "library"
        compile(kind, "8", self.output / name, *sources, HERE / "core/Is.cs", f"-r:{self.library}", f"-r:{NUNIT}")

    def nunit(self, name: str) -> str:
        compile("exe", "8", self.output / "Run.dll", HERE / "core/Run.cs", f"-r:{NUNIT}")
        self.configure("Run")
        ended = subprocess.run([DOTNET, "Run.dll", name], cwd=self.output, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return ended.stdout

    def configure(self, name: str) -> None:
        self.write(f"{name}.runtimeconfig.json", json.dumps(CONFIG))


def compile(kind: str, version: str, output: Path, *arguments: str | Path) -> None:
    options = ["-warnaserror", f"-target:{kind}", f"-langversion:{version}", f"-out:{output}"]
    command = [*COMPILER, *options, *REFERENCES, *arguments]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode != 0:
        raise AssertionError(ended.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
